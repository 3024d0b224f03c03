/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/symbols.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FUNCTION 65536u
#define NO_SYMBOL_END 256u /* bytes of a function whose symbol has no size and no follower */

struct wanted {
	const char *name;
	uint8_t kind, size_kind;
	const char *sibling;
};

static const struct wanted wanted[] = {
#define X(name, kind, size_kind, sibling) {name, SS_HOOK_##kind, SS_SIZE_##size_kind, sibling},
#include "inject/hooks.def"
#undef X
};
#define NWANTED (sizeof(wanted) / sizeof(wanted[0]))

static bool is_cxx(const struct wanted *w)
{
	return w->name[0] == '_' && w->name[1] == 'Z';
}

static bool is_map_function(uint8_t kind)
{
	return kind >= SS_HOOK_MMAP && kind <= SS_HOOK_SHMDT;
}

/* A definition found in one module. */
struct found {
	uint64_t value, size; /* ELF address */
	bool indirect;	      /* IFUNC */
};

struct module {
	const struct map *map; /* first mapping of the file */
	uint64_t bias;
	struct found found[NWANTED];
	bool glibc, musl, jemalloc, tcmalloc, mimalloc;
	VEC(uint64_t) starts; /* all function symbols, for missing sizes */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void note_allocator(struct module *m, const char *name)
{
	if (!strcmp(name, "gnu_get_libc_version") || !strcmp(name, "__libc_freeres"))
		m->glibc = true;
	else if (!strcmp(name, "__libc_malloc_impl") || !strcmp(name, "__malloc_donate"))
		m->musl = true;
	else if (!strcmp(name, "mallocx") || !strcmp(name, "je_mallocx") ||
		 !strcmp(name, "_rjem_mallocx"))
		m->jemalloc = true;
	else if (!strcmp(name, "tc_malloc"))
		m->tcmalloc = true;
	else if (!strcmp(name, "mi_malloc"))
		m->mimalloc = true;
}

static void take_symbol(struct module *m, const char *name, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !sym->st_value ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC))
		return;
	note_allocator(m, name);
	for (size_t i = 0; i < NWANTED; i++) {
		if (strcmp(name, wanted[i].name))
			continue;
		/* .dynsym and .symtab both list it; versions of a symbol may differ: first wins. */
		if (!m->found[i].value)
			m->found[i] = (struct found){sym->st_value, sym->st_size,
						     type == STT_GNU_IFUNC};
		return;
	}
}

static int scan_symbols(struct module *m, Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || !sh.sh_entsize ||
		    (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < data->d_size / sh.sh_entsize; i++) {
			const char *name;
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym))
				break;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (!name)
				continue;
			take_symbol(m, name, &sym);
			if (GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_value &&
			    vec_push(&m->starts, sym.st_value))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Address minus ELF address, from the mapping of the first loaded byte. */
static int find_bias(struct module *m, Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		uint64_t page;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		page = ph.p_offset & ~4095ull;
		if (m->map->offset >= page && m->map->offset < ph.p_offset + ph.p_filesz) {
			m->bias = m->map->start - (ph.p_vaddr & ~4095ull) -
				  (m->map->offset - page);
			return 0;
		}
	}
	return -ENOENT;
}

static uint64_t end_of(const struct module *m, const struct found *f)
{
	uint64_t end = f->value + f->size;

	if (!f->size) {
		end = f->value + NO_SYMBOL_END;
		vec_for_each(&m->starts, s)
		{
			if (*s > f->value && *s < end)
				end = *s;
		}
	}
	if (end - f->value > MAX_FUNCTION)
		end = f->value + MAX_FUNCTION;
	return end;
}

/* Where a function that is one direct jump goes (a thunk), 0: it is not. */
static uint64_t thunk_target(struct target *t, uint64_t addr, uint64_t end)
{
	struct arch_insn i;
	uint8_t code[32];
	size_t at = 0;

	if (mem_read(&t->mem, addr, code, sizeof(code)) || !t->arch->decode(code, sizeof(code), addr, &i))
		return 0;
	if (i.kind == ARCH_INSN_LANDING_PAD) {
		at = i.length;
		if (!t->arch->decode(code + at, sizeof(code) - at, addr + at, &i))
			return 0;
	}
	/* More code behind it would make it somebody's hook. */
	return i.kind == ARCH_INSN_JUMP && addr + at + i.length >= end ? i.target : 0;
}

static int by_addr(const struct hook_plan *p, uint64_t addr)
{
	for (size_t i = 0; i < p->hooks.n; i++) {
		if (p->hooks.at[i].addr == addr)
			return (int)i;
	}
	return -1;
}

static void refuse(struct hook_plan *plan, const char *name, const char *module, const char *why)
{
	size_t n = strlen(plan->refused);

	snprintf(plan->refused + n, sizeof(plan->refused) - n, "%s%s in %s (%s)", n ? "; " : "", name,
		 module, why);
}

static bool goes_through_malloc(const struct module *m, const struct wanted *w)
{
	/* libstdc++'s operators call malloc and free, which are hooked themselves. */
	return is_cxx(w) && !m->found[0].value;
}

static int add_module(struct target *t, const struct module *m, const struct hook_plan *known,
		      struct hook_plan *plan)
{
	const char *module = base_name(m->map->path);

	for (size_t i = 0; i < NWANTED; i++) {
		const struct wanted *w = &wanted[i];
		const struct found *f = &m->found[i];
		struct planned_hook h = {.kind = w->kind, .size_kind = w->size_kind, .sibling = -1};
		uint64_t jump;

		if (!f->value || goes_through_malloc(m, w))
			continue;
		if (f->indirect) {
			refuse(plan, w->name, module, "chosen by the loader at run time");
			continue;
		}
		h.addr = f->value + m->bias;
		h.end = end_of(m, f) + m->bias;
		jump = thunk_target(t, h.addr, h.end);
		if (jump && by_addr(plan, jump) >= 0)
			continue; /* another name of what is hooked */
		if (by_addr(plan, h.addr) >= 0 || (known && by_addr(known, h.addr) >= 0))
			continue;
		h.bias = m->bias;
		snprintf(h.name, sizeof(h.name), "%s", w->name);
		snprintf(h.module, sizeof(h.module), "%s", module);
		h.glibc_chunks = m->glibc && !m->musl && !m->jemalloc && !m->tcmalloc &&
				 !m->mimalloc && !is_map_function(w->kind);
		h.ino = m->map->ino;
		h.dev_major = m->map->dev_major;
		h.dev_minor = m->map->dev_minor;
		for (size_t k = 0; w->sibling && k < plan->hooks.n; k++) {
			if (!strcmp(plan->hooks.at[k].name, w->sibling) &&
			    plan->hooks.at[k].bias == m->bias)
				h.sibling = (int)k;
		}
		if (w->kind == SS_HOOK_ALLOC_THROW && h.sibling < 0) {
			refuse(plan, w->name, module, "has no variant that does not throw");
			continue;
		}
		if (vec_push(&plan->hooks, h))
			return -ENOMEM;
	}
	return 0;
}

/* A hook is left out when its function just goes on to another one of the same role: the call
 * would count twice, for a tail jump leaves no frame that could tell. */
static bool goes_on(struct target *t, const struct hook_plan *plan, const struct planned_hook *h)
{
	uint64_t length = h->end - h->addr;
	struct arch_insn i;
	bool hit = false;
	uint8_t *code;

	if (h->kind != SS_HOOK_FREE || length > MAX_FUNCTION)
		return false;
	code = malloc(length);
	if (code && !mem_read(&t->mem, h->addr, code, length)) {
		for (uint64_t at = 0; at < length && !hit; at += i.length) {
			int k;

			if (!t->arch->decode(code + at, length - at, h->addr + at, &i)) {
				i.length = 1;
				continue;
			}
			if (i.kind != ARCH_INSN_JUMP && i.kind != ARCH_INSN_CALL)
				continue;
			k = by_addr(plan, i.target);
			hit = k >= 0 && plan->hooks.at[k].kind == SS_HOOK_FREE &&
			      plan->hooks.at[k].addr != h->addr;
		}
	}
	free(code);
	return hit;
}

static void drop_doubles(struct target *t, struct hook_plan *plan)
{
	VEC(size_t) gone = {0};

	for (size_t i = 0; i < plan->hooks.n; i++) {
		if (goes_on(t, plan, &plan->hooks.at[i]) && vec_push(&gone, i))
			break;
	}
	for (size_t k = gone.n; k-- > 0;) {
		size_t i = gone.at[k];

		memmove(&plan->hooks.at[i], &plan->hooks.at[i + 1],
			(plan->hooks.n - i - 1) * sizeof(plan->hooks.at[0]));
		plan->hooks.n--;
		vec_for_each(&plan->hooks, h)
		{
			if (h->sibling > (int)i)
				h->sibling--;
		}
	}
	vec_free(&gone);
}

static void name_allocators(struct hook_plan *plan, const struct module *m)
{
	const char *name = m->jemalloc	 ? "jemalloc"
			   : m->tcmalloc ? "tcmalloc"
			   : m->mimalloc ? "mimalloc"
			   : m->musl	 ? "musl"
			   : m->glibc	 ? "glibc"
					 : base_name(m->map->path);
	size_t n = strlen(plan->allocators);

	/* An allocator is what defines malloc or a prefixed sibling. */
	for (size_t i = 0; i < NWANTED; i++) {
		if (m->found[i].value && wanted[i].kind == SS_HOOK_ALLOC && !is_cxx(&wanted[i])) {
			if (!strstr(plan->allocators, name))
				snprintf(plan->allocators + n, sizeof(plan->allocators) - n, "%s%s",
					 n ? ", " : "", name);
			return;
		}
	}
}

static bool is_loader(const char *path)
{
	return !strncmp(base_name(path), "ld-linux", 8);
}

int hook_plan_make(struct target *t, const struct maps *maps, const struct hook_plan *known,
		   struct hook_plan *plan, struct mp_err *err)
{
	const struct map *last = NULL;

	memset(plan, 0, sizeof(*plan));
	elf_version(EV_CURRENT);
	vec_for_each(&maps->list, map)
	{
		struct module m = {.map = map};
		int fd, ret;
		Elf *elf;

		/* The first mapping of each file that is mapped as a module. */
		if (!map->ino || map->path[0] != '/' ||
		    (last && last->ino == map->ino && last->dev_major == map->dev_major &&
		     last->dev_minor == map->dev_minor && map->offset > last->offset) ||
		    is_loader(map->path))
			continue;
		fd = proc_open_map(t->pid, map);
		if (fd < 0)
			continue;
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		ret = 0;
		if (elf && elf_kind(elf) == ELF_K_ELF && !find_bias(&m, elf)) {
			last = map;
			ret = scan_symbols(&m, elf);
			if (!ret) {
				name_allocators(plan, &m);
				ret = add_module(t, &m, known, plan);
			}
		}
		vec_free(&m.starts);
		elf_end(elf);
		close(fd);
		if (ret) {
			hook_plan_free(plan);
			return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot read the symbols of %s: %s",
				       map->path, strerror(-ret));
		}
	}
	drop_doubles(t, plan);
	/* The executable mapping each function lies in: its identity when it is restored. */
	vec_for_each(&plan->hooks, h)
	{
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
}
