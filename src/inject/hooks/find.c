/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "inject/hooks/symbols.h"
#include "lib/path.h"

#define MAX_FUNCTION  65536u
#define NO_SYMBOL_END 256u /* bytes of a function with no symbol size or follower */
#define MAX_RETURN    16u  /* bytes of a function that only returns, without landing pads */
#define MAX_PAD	      8u

static bool is_cxx(const struct wanted *w)
{
	return w->name[0] == '_' && w->name[1] == 'Z';
}

static bool is_map_function(uint8_t kind)
{
	return kind >= SS_HOOK_MMAP && kind <= SS_HOOK_SHMDT;
}

static uint64_t end_of(const struct module *m, const struct found *f)
{
	uint64_t end = f->value + f->size;

	if (!f->size) {
		end = f->value + NO_SYMBOL_END;
		vec_for_each (&m->starts, s) {
			if (*s > f->value && *s < end)
				end = *s;
		}
	}
	if (end - f->value > MAX_FUNCTION)
		end = f->value + MAX_FUNCTION;
	return end;
}

#define MAX_ENTRY 32

/* Decodes the first instruction after the landing pad, if there is one, in @n bytes (up to
 * MAX_ENTRY) at @addr (with code_bits).  @at: its offset.  Return: false if it cannot be decoded. */
static bool decode_entry(struct target *t, uint64_t addr, size_t n, struct arch_insn *i, size_t *at)
{
	uint8_t code[MAX_ENTRY];

	*at = 0;
	if (mem_read(&t->mem, addr & ~(uint64_t)t->arch->code_bits, code, n) ||
	    !t->arch->patch.decode(code, n, addr, i))
		return false;
	if (i->kind != ARCH_INSN_LANDING_PAD)
		return true;
	*at = i->length;
	return t->arch->patch.decode(code + *at, n - *at, addr + *at, i);
}

/* Return: the GOT word that a PLT entry jumps through; 0 if @addr is not a PLT entry. */
static uint64_t plt_slot(struct target *t, uint64_t addr)
{
	struct arch_insn i;
	size_t at;

	return decode_entry(t, addr, 16, &i, &at) && i.kind == ARCH_INSN_INDIRECT && i.has_target
		   ? i.target
		   : 0;
}

/* Return: a PLT entry's target, the address in its GOT word after binding; otherwise @addr itself.
 */
static uint64_t through_plt(struct target *t, uint64_t addr)
{
	uint64_t slot = plt_slot(t, addr);
	uint8_t word[8];

	return slot && !mem_read(&t->mem, slot, word, t->arch->word_size)
		   ? arch_word(t->arch, word) & ~(uint64_t)t->arch->code_bits
		   : addr;
}

/* Return: the target of a function that is a single direct jump (a thunk), or 0.  @addr with
 * code_bits. */
static uint64_t thunk_target(struct target *t, uint64_t addr, uint64_t end)
{
	uint64_t at_addr = addr & ~(uint64_t)t->arch->code_bits;
	struct arch_insn i;
	size_t at;

	if (!decode_entry(t, addr, MAX_ENTRY, &i, &at))
		return 0;
	/* If code follows, the jump is another tool's hook. */
	return i.kind == ARCH_INSN_JUMP && at_addr + at + i.length >= end ? through_plt(t, i.target)
									  : 0;
}

/*
 * Does the function only return, perhaps with a constant?  Such a short function that contains no
 * address cannot do an allocator's work.  A linker that folds identical code (--icf) shares one
 * copy of it among all functions that do nothing, so calls of the copy are not necessarily calls of
 * this function.  Other folded code does the same work under each of its names.
 */
static bool only_returns(struct target *t, const struct planned_hook *h)
{
	size_t length = h->end - h->addr, pad = 0;
	uint8_t code[MAX_RETURN + MAX_PAD];
	struct arch_insn i;

	if (length > sizeof(code) || mem_read(&t->mem, h->addr, code, length))
		return false;
	for (size_t at = 0; at < length; at += i.length) {
		if (!t->arch->patch.decode(code + at, length - at, (h->addr + at) | h->code_bits,
					   &i))
			return false;
		if (i.kind == ARCH_INSN_LANDING_PAD)
			pad += i.length;
		else if (i.kind != ARCH_INSN_PLAIN && i.kind != ARCH_INSN_RETURN)
			return false;
	}
	return length - pad <= MAX_RETURN;
}

static int by_addr(const struct hook_plan *p, uint64_t addr)
{
	for (size_t i = 0; i < p->hooks.n; i++) {
		if (p->hooks.at[i].addr == addr && !p->hooks.at[i].gone)
			return (int)i;
	}
	return -1;
}

static void refuse_hook(struct hook_plan *plan, const char *name, const char *module,
			const char *why)
{
	size_t n = strlen(plan->refused);

	snprintf(plan->refused + n, sizeof(plan->refused) - n, "%s%s in %s (%s)", n ? "; " : "",
		 name, module, why);
}

/*
 * Is it the aligned operator new of the C++ library?  That one requests a multiple of the alignment
 * from aligned_alloc, so the requested size is known only here.  operator new[] and the nothrow
 * variants call it.  A program's own operator can get its memory from anywhere.
 */
static bool rounds_size(const struct module *m, const struct wanted *w)
{
	const char *name = path_base(m->map->path);

	return !strcmp(w->name, "_ZnwmSt11align_val_t") && !m->found[wanted_find("malloc")].value &&
	       (!strncmp(name, "libstdc++.so", 12) || !strncmp(name, "libc++.so", 9) ||
		!strncmp(name, "libc++abi.so", 12));
}

/* Is this definition an allocator's, and not a function that has the same name by chance? */
static bool is_allocators(const struct module *m, const struct wanted *w)
{
	const struct found *f = m->found;
	const bool local = f[w - wanted_function].local;

	if (known_prefix(w->name) || rounds_size(m, w))
		return true;
	/* In a static-pie all names are local; elsewhere a local mmap is a different function. */
	if (is_map_function(w->kind))
		return !local || m->glibc || m->musl;
	if (!f[wanted_find("malloc")].value || !f[wanted_find("free")].value ||
	    (local && !f[wanted_find("realloc")].value))
		return false;
	/* libstdc++'s operators call malloc and free, which are hooked themselves; in a static
	 * program all of them are in one module. */
	return !is_cxx(w) || m->known || !(m->glibc || m->musl);
}

/* Does this allocator free blocks itself, instead of passing them to the free of another one? */
static bool is_known_allocator(const struct module *m, const struct wanted *w)
{
	return m->known || m->glibc || m->musl || known_prefix(w->name);
}

/* Is malloc glibc's own?  Then the words before its blocks can be read. */
static bool has_glibc_chunks(const struct module *m)
{
	return m->glibc && !m->musl && !m->known && m->libc_malloc &&
	       m->found[wanted_find("malloc")].value == m->libc_malloc;
}

/*
 * When a thread ends, glibc frees the blocks in the thread's cache a second time.  These frees are
 * recognized by their caller.  If the symbol of that function is unknown, all of libc's code is
 * used.  The symbol is known in programs that contain glibc statically, where most frees are the
 * program's own.
 */
static void note_own_code(const struct module *m, const struct maps *maps, struct planned_hook *h)
{
	const struct map *map = maps_find(maps, h->addr);

	if (!h->glibc_chunks || !map)
		return;
	h->own_start = m->thread_end ? m->thread_end + m->bias : map->start;
	h->own_end = m->thread_end ? h->own_start + m->thread_end_size : map->end;
}

/* A symbol's value can be wrong: accepts only text of the module's file.  Truncates the function at
 * the end of the mapping. */
static bool in_text(const struct maps *maps, const struct module *m, struct planned_hook *h)
{
	const struct map *map = maps_find(maps, h->addr);

	if (!map || !map->exec || map->ino != m->map->ino)
		return false;
	if (h->end > map->end)
		h->end = map->end;
	return true;
}

/* Was the text moved to anonymous memory, as programs do that put their text on huge pages?  A
 * file's own symbols are never in such memory otherwise. */
static bool is_remapped(const struct maps *maps, const struct planned_hook *h)
{
	const struct map *map = maps_find(maps, h->addr);

	return map && map->exec && !map->ino;
}

/* Searches by address, because the sibling can be planned under another name, or be a jump to a
 * planned function. */
static int sibling_of(struct target *t, const struct module *m, const struct wanted *w,
		      const struct hook_plan *plan)
{
	const struct found *f = w->sibling ? &m->found[wanted_find(w->sibling)] : NULL;
	uint64_t addr, jump;
	int k;

	if (!f || !f->value)
		return -1;
	addr = f->value + m->bias;
	k = by_addr(plan, addr);
	jump = k < 0 ? thunk_target(t, addr | f->code_bits, end_of(m, f) + m->bias) : 0;
	return jump ? by_addr(plan, jump) : k;
}

/* Address of a sibling that is not hooked; 0 if there is none. */
static uint64_t sibling_addr(const struct module *m, const struct wanted *w)
{
	const struct found *f = &m->found[wanted_find(w->sibling)];

	return f->value && !f->indirect ? (f->value + m->bias) | f->code_bits : 0;
}

static int add_module(struct target *t, const struct maps *maps, const struct module *m,
		      const struct hook_plan *known, struct hook_plan *plan)
{
	const char *module = path_base(m->map->path);

	for (size_t i = 0; i < NWANTED; i++) {
		const struct wanted *w = &wanted_function[i];
		const struct found *f = &m->found[i];
		struct planned_hook h = {.kind = w->kind, .size_kind = w->size_kind, .sibling = -1};
		uint64_t jump;

		if (!f->value || !is_allocators(m, w))
			continue;
		if (f->indirect) {
			refuse_hook(plan, w->name, module, "chosen by the loader at run time");
			continue;
		}
		if (w->kind == SS_HOOK_FREE && !is_known_allocator(m, w))
			h.kind = SS_HOOK_FREE_THROUGH;
		h.addr = f->value + m->bias;
		h.end = end_of(m, f) + m->bias;
		if (!in_text(maps, m, &h)) {
			if (is_remapped(maps, &h))
				refuse_hook(plan, w->name, module,
					    "its text was copied to other memory");
			continue;
		}
		jump = thunk_target(t, h.addr | f->code_bits, h.end);
		h.code_bits = f->code_bits;
		if (only_returns(t, &h)) {
			if (w->kind == SS_HOOK_FREE)
				refuse_hook(plan, w->name, module,
					    "its code only returns, so it frees nothing, and other "
					    "functions may share the code");
			continue;
		}
		if (jump && by_addr(plan, jump) >= 0)
			continue; /* another name of a hooked function */
		if (by_addr(plan, h.addr) >= 0 || (known && by_addr(known, h.addr) >= 0))
			continue;
		h.bias = m->bias;
		h.rseq_list = m->rseq_list + m->bias;
		h.rseq_length = m->rseq_length;
		snprintf(h.name, sizeof(h.name), "%s", w->name);
		snprintf(h.module, sizeof(h.module), "%s", module);
		h.owner = m->sanitizer;
		h.glibc_chunks = has_glibc_chunks(m) && !is_map_function(w->kind);
		note_own_code(m, maps, &h);
		h.ino = m->map->ino;
		h.dev_major = m->map->dev_major;
		h.dev_minor = m->map->dev_minor;
		h.sibling = sibling_of(t, m, w, plan);
		if (rounds_size(m, w))
			h.sibling_addr = sibling_addr(m, w);
		if (w->kind == SS_HOOK_ALLOC_THROW && h.sibling < 0 && !h.sibling_addr) {
			refuse_hook(plan, w->name, module, "has no nothrow variant");
			continue;
		}
		if (vec_push(&plan->hooks, h))
			return -ENOMEM;
	}
	return 0;
}

/* Does a branch lead to the free of any module, through the PLT or the GOT word itself? */
static bool calls_free_slot(struct target *t, const struct hook_plan *plan,
			    const struct arch_insn *i)
{
	uint64_t slot = i->kind == ARCH_INSN_INDIRECT ? i->target : plt_slot(t, i->target);

	vec_for_each (&plan->free_slots, it) {
		if (slot && *it == slot)
			return true;
	}
	return false;
}

static bool same_kind(uint8_t a, uint8_t b)
{
	a = a == SS_HOOK_FREE_THROUGH ? SS_HOOK_FREE : a;
	b = b == SS_HOOK_FREE_THROUGH ? SS_HOOK_FREE : b;
	return a == b;
}

bool hook_calls_hooked(struct target *t, const struct hook_plan *plan, const struct planned_hook *h)
{
	uint64_t length = h->end - h->addr;
	struct arch_insn i;
	bool hit = false;
	uint8_t *code;

	if (length > MAX_FUNCTION)
		return false;
	code = malloc(length);
	if (code && !mem_read(&t->mem, h->addr, code, length)) {
		for (uint64_t at = 0; at < length && !hit; at += i.length) {
			int k;

			if (!t->arch->patch.decode(code + at, length - at,
						   (h->addr + at) | h->code_bits, &i)) {
				i.length = t->arch->insn_align;
				continue;
			}
			if (!i.has_target || i.kind == ARCH_INSN_PC_RELATIVE)
				continue;
			if (h->kind == SS_HOOK_FREE && calls_free_slot(t, plan, &i)) {
				hit = true;
				break;
			}
			k = by_addr(plan, through_plt(t, i.target));
			hit = k >= 0 && same_kind(plan->hooks.at[k].kind, h->kind) &&
			      plan->hooks.at[k].addr != h->addr;
		}
	}
	free(code);
	return hit;
}

void hook_plan_drop(struct hook_plan *plan, size_t i)
{
	memmove(&plan->hooks.at[i], &plan->hooks.at[i + 1],
		(plan->hooks.n - i - 1) * sizeof(plan->hooks.at[0]));
	plan->hooks.n--;
	vec_for_each (&plan->hooks, h) {
		if (h->sibling == (int)i)
			h->sibling = -1;
		else if (h->sibling > (int)i)
			h->sibling--;
	}
}

static void drop_doubles(struct target *t, struct hook_plan *plan)
{
	VEC(size_t) gone = {0};

	/* The hook of free leaves no frame by which a nested free could be recognized. */
	for (size_t i = 0; i < plan->hooks.n; i++) {
		if (plan->hooks.at[i].kind == SS_HOOK_FREE &&
		    hook_calls_hooked(t, plan, &plan->hooks.at[i]) && vec_push(&gone, i))
			break;
	}
	for (size_t k = gone.n; k-- > 0;)
		hook_plan_drop(plan, gone.at[k]);
	vec_free(&gone);
}

static bool all_glibc_chunks(const struct hook_plan *plan)
{
	vec_for_each (&plan->hooks, h) {
		if (h->kind == SS_HOOK_ALLOC && !h->glibc_chunks)
			return false;
	}
	return true;
}

/* Only if there is a single allocator is it certain which aligned_alloc the C++ library calls. */
static void find_chunks(const struct hook_plan *known, struct hook_plan *plan)
{
	bool glibc = all_glibc_chunks(plan) && (!known || all_glibc_chunks(known));

	vec_for_each (&plan->hooks, h)
		h->glibc_chunks |= glibc && h->sibling_addr;
}

static void name_allocators(struct hook_plan *plan, const struct module *m)
{
	const char *name = m->sanitizer ? m->sanitizer
			   : m->known	? m->known->name
			   : m->musl	? "musl"
			   : m->glibc	? "glibc"
					: path_base(m->map->path);
	size_t n = strlen(plan->allocators);

	/* A module has an allocator if it defines malloc or a prefixed variant. */
	for (size_t i = 0; i < NWANTED; i++) {
		if (m->found[i].value && wanted_function[i].kind == SS_HOOK_ALLOC &&
		    !is_cxx(&wanted_function[i]) && is_allocators(m, &wanted_function[i])) {
			if (!strstr(plan->allocators, name))
				snprintf(plan->allocators + n, sizeof(plan->allocators) - n, "%s%s",
					 n ? ", " : "", name);
			return;
		}
	}
}

static bool same_file(const struct map *a, const struct map *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Opening a device or a fifo can have side effects: opens only files that code is mapped from. */
static bool has_code(const struct maps *maps, const struct map *first)
{
	const struct map *end = maps->list.at + maps->list.n;

	for (const struct map *map = first; map < end && map < first + 16; map++) {
		if (map->exec && same_file(map, first))
			return true;
		/* Its text was moved to anonymous memory. */
		if (map->exec && !map->ino && map > first && same_file(map - 1, first) &&
		    map + 1 < end && same_file(map + 1, first) && map[-1].end == map->start &&
		    map->end == map[1].start)
			return true;
	}
	return false;
}

static int note_module(struct hook_plan *plan, const struct module *m)
{
	if (m->nameless)
		snprintf(plan->nameless, sizeof(plan->nameless), "%s", path_base(m->map->path));
	vec_for_each (&m->free_slots, slot) {
		if (vec_push(&plan->free_slots, *slot))
			return -ENOMEM;
	}
	return 0;
}

int hook_plan_make(struct target *t, const struct maps *maps, const struct hook_plan *known,
		   struct hook_plan *plan, struct mp_err *err)
{
	const struct map *last = NULL;

	memset(plan, 0, sizeof(*plan));
	elf_version(EV_CURRENT);
	vec_for_each (&maps->list, map) {
		struct module m = {.arch = t->arch, .map = map};
		int fd, ret;
		Elf *elf;

		/* Only the first mapping of each file that is mapped as a module. */
		if (!map->ino || map->path[0] != '/' ||
		    (last && last->ino == map->ino && last->dev_major == map->dev_major &&
		     last->dev_minor == map->dev_minor && map->offset > last->offset) ||
		    !has_code(maps, map))
			continue;
		fd = map_open(t->pid, map);
		if (fd == -ESTALE || (fd == -ENOENT && strstr(map->path, " (deleted)")))
			refuse_hook(plan, "anything", path_base(map->path),
				    "its file was deleted or replaced, and opening the mapped file "
				    "needs CAP_CHECKPOINT_RESTORE");
		if (fd < 0)
			continue;
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		ret = module_scan(&m, elf);
		if (ret != -ENOENT)
			last = map;
		if (!ret)
			ret = note_module(plan, &m);
		if (!ret && !m.loader) {
			name_allocators(plan, &m);
			ret = add_module(t, maps, &m, known, plan);
		}
		module_free(&m);
		elf_end(elf);
		close(fd);
		if (ret == -ENOENT)
			continue;
		if (ret) {
			hook_plan_free(plan);
			return mp_fail(err, MP_EXIT_FAILURE, ret,
				       "cannot read the symbols of %s: %s", map->path,
				       strerror(-ret));
		}
	}
	drop_doubles(t, plan);
	find_chunks(known, plan);
	/* Sets the executable mapping that contains each function: it identifies the function when
	 * its text is restored. */
	vec_for_each (&plan->hooks, h) {
		const struct map *map = maps_find(maps, h->addr);

		h->map_start = map ? map->start : 0;
		h->map_end = map ? map->end : 0;
		h->map_offset = map ? map->offset : 0;
	}
	return 0;
}

void hook_plan_free(struct hook_plan *plan)
{
	vec_free(&plan->hooks);
	vec_free(&plan->free_slots);
}
