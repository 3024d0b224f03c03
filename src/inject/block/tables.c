/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/block/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "inject/block/gdb_jit.h"
#include "inject/block/module.h"
#include "unwind/build.h"
#include "unwind/prologues.h"
#include "unwind/rule_set.h"
#include "unwind/sigtramp.h"
#include "unwind/step.h"
#include "unwind/table.h"
#include "unwind/table_cache.h"
#include "unwind/untabled.h"

#define MAX_VDSO (64u << 10)

static void *at(const struct tables *tb, uint64_t offset)
{
	return (char *)tb->block + offset;
}

int tables_init(struct tables *tb, struct ss_control *block, const struct ss_control *layout)
{
	elf_version(EV_CURRENT);
	memset(tb, 0, sizeof(*tb));
	tb->block = block;
	tb->layout = *layout;
	tb->rows_at = layout->rows;
	tb->rows_end = layout->rows_end;
	tb->cache = -1;
	tb->rules = rule_set_new();
	return tb->rules ? 0 : -ENOMEM;
}

static uint64_t list_size(void)
{
	return (sizeof(struct ss_module_list) + SS_MAX_MODULES * sizeof(struct ss_module) + 63) &
	       ~63ull;
}

static bool rows_inside(const struct tables *tb, const struct ss_module *m)
{
	return m->start < m->end && m->pcs >= tb->layout.rows && m->rules >= tb->layout.rows &&
	       m->pcs <= tb->rows_at && m->rules <= tb->rows_at &&
	       m->n <= (tb->rows_at - m->pcs) / 4 && m->n <= (tb->rows_at - m->rules) / 2;
}

/* Takes over the entries of the agent's own code from the list that is in use. */
static int resume_own(struct tables *tb)
{
	uint64_t current = tb->block->module_list,
		 index = (current - SS_LISTS_OFFSET) / list_size();
	const struct ss_module_list *list = at(tb, current);
	uint32_t n;

	if (current < SS_LISTS_OFFSET || index >= SS_MODULE_LISTS ||
	    SS_LISTS_OFFSET + index * list_size() != current)
		return -EPROTO;
	tb->next_list = (uint32_t)index + 1;
	n = __atomic_load_n(&list->n, __ATOMIC_RELAXED);
	n = n <= SS_MAX_MODULES ? n : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct ss_module m = list->at[i];

		if (!(m.flags & SS_MODULE_AGENT))
			continue;
		if (!rows_inside(tb, &m))
			return -EPROTO;
		if (vec_push(&tb->own, m))
			return -ENOMEM;
	}
	return 0;
}

int tables_resume(struct tables *tb, struct ss_control *block, const struct ss_control *layout)
{
	uint64_t rows = block->rows_used;
	uint32_t rules = block->rules_used;
	int ret = tables_init(tb, block, layout);

	if (ret)
		return ret;
	if (rows < layout->rows || rows > layout->rows_end || rules < 2 || rules >= UINT16_MAX)
		return -EPROTO;
	tb->rows_at = rows;
	for (uint32_t i = 2; i < rules; i++) {
		struct uw_full f = ((const struct uw_full *)at(tb, layout->full_rules))[i];

		if (rule_set_add(tb->rules, &f) != i)
			return -EPROTO;
	}
	tb->rules_published = rules;
	return resume_own(tb);
}

void tables_free(struct tables *tb)
{
	if (tb->rules && tb->cache >= 0)
		close(tb->cache);
	texts_free(&tb->paths);
	vec_free(&tb->gdb_jits);
	vec_free(&tb->code);
	vec_free(&tb->past);
	vec_free(&tb->own);
	rule_set_free(tb->rules);
	tb->rules = NULL;
}

/* Copies the rows of [@start, @end) into the block; @bias is added to the table's addresses. */
static int put_rows(struct tables *tb, const struct unwind_table *t, uint64_t bias, uint64_t start,
		    uint64_t end, struct ss_module *s)
{
	uint32_t first = 0, last;
	uint64_t bytes;
	uint32_t *pcs;

	*s = (struct ss_module){.start = start, .end = end};
	/* The row before the range can extend into it. */
	while (first + 1 < t->n && t->pc[first + 1] + bias <= start)
		first++;
	for (last = first; last < t->n && t->pc[last] + bias < end; last++)
		;
	bytes = ((uint64_t)(last - first) * 6 + 32) & ~7ull;
	if (end - start > UINT32_MAX || tb->rows_at + bytes > tb->rows_end)
		return 0; /* as if it had no unwind information: the agent marks such frames */
	s->n = last - first;
	s->pcs = tb->rows_at;
	s->rules = (s->pcs + 4ull * s->n + 7) & ~7ull;
	pcs = at(tb, s->pcs);
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t pc = t->pc[first + i] + bias;

		pcs[i] = pc < start ? 0 : (uint32_t)(pc - start);
	}
	if (s->n)
		memcpy(at(tb, s->rules), t->rule + first, 2ull * s->n);
	tb->rows_at = (s->rules + 2ull * s->n + 7) & ~7ull;
	return 0;
}

static bool same_code(const struct code *a, const struct code *b)
{
	return a->m.build_id_len && a->m.build_id_len == b->m.build_id_len &&
	       !memcmp(a->m.build_id, b->m.build_id, a->m.build_id_len) &&
	       a->m.file_offset == b->m.file_offset &&
	       a->m.end - a->m.start == b->m.end - b->m.start;
}

/* Reuses rows of an unloaded module; rows are relative to the start of their mapping.  Return:
 * whether there were any. */
static bool rows_of_before(const struct tables *tb, struct code *c)
{
	vec_for_each (&tb->past, p) {
		if (!same_code(p, c))
			continue;
		c->s.n = p->s.n;
		c->s.pcs = p->s.pcs;
		c->s.rules = p->s.rules;
		return true;
	}
	return false;
}

/* If there is no memory to keep them, the rows are built again later. */
static void keep_rows(struct tables *tb, const struct code *c)
{
	struct code known = {.m = c->m};

	if (c->s.n && c->m.build_id_len && !rows_of_before(tb, &known) && vec_push(&tb->past, *c))
		return;
}

static int add_elf(struct tables *tb, Elf *elf, const struct map *map, struct code *c)
{
	struct unwind_table table;
	int err;

	if (module_read(elf, map, &c->m))
		return 0;
	if (rows_of_before(tb, c))
		return 0;
	if (unwind_cache_table(tb->cache, c->m.build_id, c->m.build_id_len, elf, tb->rules, &table))
		return 0;
	err = put_rows(tb, &table, c->m.bias, map->start, map->end, &c->s);
	unwind_table_free(&table);
	return err;
}

/* ARM's page of code that signal handlers return to; it is not an ELF image. */
static int add_sigpage(struct tables *tb, struct target *t, const struct map *map, struct code *c)
{
	struct unwind_table table = {0};
	uint8_t page[4096];
	size_t size = map->end - map->start;
	int err;

	if (size > sizeof(page) || mem_read(&t->mem, map->start, page, size))
		return 0;
	err = sigtramp_rows(t->arch, page, size, map->start, tb->rules, &table);
	if (!err)
		err = put_rows(tb, &table, 0, map->start, map->end, &c->s);
	unwind_table_free(&table);
	return err;
}

/* Adds code without a file: the rows that it was registered with, or one rule for all of it. */
static int add_jit(struct tables *tb, struct target *t, const struct map *map, struct code *c)
{
	struct unwind_table table = {0};
	int err = 0;

	vec_for_each (&tb->gdb_jits, descriptor) {
		if (!err)
			err = gdb_jit_rows(t, *descriptor, map->start, map->end, tb->rules, &table);
	}
	if (!err && !table.n && jit_keeps_fp(&tb->jit) && t->arch->unwind.find_frames) {
		struct uw_full rule = prologue_rule(t->arch);

		err = unwind_table_add(&table, map->start, rule_set_add(tb->rules, &rule));
	}
	if (!err && table.n)
		err = put_rows(tb, &table, 0, map->start, map->end, &c->s);
	unwind_table_free(&table);
	return err;
}

/* Notes what the file shows about code that the program generates. */
static int note_jit(struct tables *tb, Elf *elf, const struct map *map)
{
	uint64_t bias, descriptor = elf ? gdb_jit_descriptor(elf) : 0;

	if (!elf)
		return 0;
	jit_note_file(&tb->jit, elf, map->path);
	if (!descriptor || module_bias(elf, map, &bias))
		return 0;
	descriptor += bias;
	return vec_push(&tb->gdb_jits, descriptor);
}

static int add_map(struct tables *tb, struct target *t, const struct map *map)
{
	struct code c = {.ino = map->ino, .seen = true};
	Elf *elf = NULL;
	int fd, err = 0;

	c.m.start = map->start;
	c.m.end = map->end;
	c.m.file_offset = map->offset;
	c.m.path = texts_keep(&tb->paths, map->path);
	c.s = (struct ss_module){.start = map->start, .end = map->end};
	if (!c.m.path)
		return -ENOMEM;
	if (!strcmp(map->path, "[vdso]") && map->end - map->start <= MAX_VDSO) {
		size_t size = map->end - map->start;
		char *image = malloc(size);

		if (image && !mem_read(&t->mem, map->start, image, size)) {
			elf = elf_memory(image, size);
			err = add_elf(tb, elf, map, &c);
			elf_end(elf);
		}
		free(image);
	} else if (!strcmp(map->path, "[sigpage]")) {
		err = add_sigpage(tb, t, map, &c);
	} else if (!map->ino) {
		err = add_jit(tb, t, map, &c);
	} else if ((fd = map_open(t->pid, map)) == -EAGAIN) {
		return 0; /* the next update finds what is mapped there then */
	} else if (fd >= 0) {
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		err = note_jit(tb, elf, map);
		if (!err)
			err = add_elf(tb, elf, map, &c);
		elf_end(elf);
		close(fd);
	}
	if (!err && vec_push(&tb->code, c))
		err = -ENOMEM;
	return err;
}

static struct code *known(struct tables *tb, const struct map *map)
{
	vec_for_each (&tb->code, c) {
		if (c->m.start == map->start && c->m.end == map->end && c->ino == map->ino &&
		    c->m.file_offset == map->offset)
			return c;
	}
	return NULL;
}

static bool is_own(const struct tables *tb, const struct map *map)
{
	vec_for_each (&tb->own, o) {
		if (map->start >= o->start && map->start < o->end)
			return true;
	}
	return false;
}

void tables_forget(struct tables *tb, uint64_t start)
{
	vec_for_each (&tb->code, c) {
		if (c->m.start == start)
			c->ino = UINT64_MAX; /* that of no mapping */
	}
}

/* Adds new mappings with (@files) or without a file.  Return: how many, or a negative errno. */
static int add_new(struct tables *tb, struct target *t, const struct maps *maps, bool files)
{
	int fresh = 0, err;

	vec_for_each (&maps->list, map) {
		struct code *c;

		if (!map->exec || (map->ino != 0) != files || is_own(tb, map) ||
		    !strcmp(map->path, "[vsyscall]"))
			continue;
		c = known(tb, map);
		if (c) {
			c->seen = true;
			continue;
		}
		err = add_map(tb, t, map);
		if (err)
			return err;
		fresh++;
	}
	return fresh;
}

int tables_update(struct tables *tb, struct target *t, const struct maps *maps)
{
	int fresh = 0, err;
	bool gone = false;
	size_t keep = 0;

	if (!tb->code.n)
		jit_note_process(&tb->jit, t->pid);
	vec_for_each (&tb->code, c)
		c->seen = false;
	/* Files first: they show how a program generates code. */
	fresh = add_new(tb, t, maps, true);
	err = fresh < 0 ? fresh : add_new(tb, t, maps, false);
	if (err < 0)
		return err;
	fresh += err;
	for (size_t i = 0; i < tb->code.n; i++) {
		if (!tb->code.at[i].seen) {
			gone = true;
			keep_rows(tb, &tb->code.at[i]);
			continue;
		}
		tb->code.at[keep++] = tb->code.at[i];
	}
	tb->code.n = keep;
	if (!fresh && !gone)
		return 0;
	err = tables_publish(tb, gone);
	return err ? err : fresh;
}

int tables_add_agent(struct tables *tb, Elf *elf, uint64_t addr, uint64_t length)
{
	struct unwind_table table;
	struct ss_module s;
	int err = unwind_table_build(elf, NULL, tb->rules, &table);

	if (err)
		return err;
	err = put_rows(tb, &table, addr, addr, addr + length, &s);
	unwind_table_free(&table);
	s.flags = SS_MODULE_AGENT;
	return err ? err : vec_push(&tb->own, s);
}

int tables_add_rows(struct tables *tb, uint64_t start, uint64_t end, const uint64_t *pc,
		    const uint16_t *rule, uint32_t n)
{
	struct unwind_table table = {.pc = (uint64_t *)pc, .rule = (uint16_t *)rule, .n = n};
	struct ss_module s;
	int err = put_rows(tb, &table, 0, start, end, &s);

	s.flags = SS_MODULE_AGENT;
	if (err)
		return err;
	vec_for_each (&tb->own, o) {
		if (o->start == start) {
			*o = s;
			return 0;
		}
	}
	return vec_push(&tb->own, s);
}

uint16_t tables_rule_at(const struct tables *tb, uint64_t pc)
{
	vec_for_each (&tb->code, c) {
		const uint32_t *pcs = at(tb, c->s.pcs);
		uint32_t lo = 0, hi = c->s.n;

		if (pc < c->s.start || pc >= c->s.end)
			continue;
		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;

			if (pcs[mid] <= pc - c->s.start)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo ? ((const uint16_t *)at(tb, c->s.rules))[lo - 1] : 0;
	}
	return 0;
}

uint16_t tables_entry_rule(struct tables *tb)
{
	struct uw_full f = uw_entry_rule(arch_native());

	return (uint16_t)rule_set_add(tb->rules, &f);
}

static int by_start(const void *a, const void *b)
{
	const struct ss_module *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int tables_publish(struct tables *tb, bool changed)
{
	const struct ss_control *c = &tb->layout;
	uint32_t n = rule_set_count(tb->rules), first = tb->rules_published;
	VEC(struct ss_module) sorted = {0};
	struct ss_module_list *list;

	/* Sorted in private memory, because the target could change the list during the sort. */
	vec_for_each (&tb->code, m) {
		if (sorted.n < SS_MAX_MODULES && vec_push(&sorted, m->s))
			break;
	}
	vec_for_each (&tb->own, o) {
		if (sorted.n < SS_MAX_MODULES && vec_push(&sorted, *o))
			break;
	}
	vec_sort(&sorted, by_start);
	memcpy((struct uw_rule *)at(tb, c->rules) + first, rule_set_rules(tb->rules) + first,
	       (n - first) * sizeof(struct uw_rule));
	memcpy((struct uw_full *)at(tb, c->full_rules) + first, rule_set_full(tb->rules) + first,
	       (n - first) * sizeof(struct uw_full));
	tb->rules_published = n;
	tb->block->rules_used = n;
	tb->block->rows_used = tb->rows_at;
	/* A list is overwritten only after three others were published: searches of it have ended
	 * by then. */
	list = at(tb, SS_LISTS_OFFSET + tb->next_list++ % SS_MODULE_LISTS * list_size());
	list->n = (uint32_t)sorted.n;
	if (sorted.n)
		memcpy(list->at, sorted.at, sorted.n * sizeof(sorted.at[0]));
	vec_free(&sorted);
	__atomic_store_n(&tb->block->module_list, (uint64_t)((char *)list - (char *)tb->block),
			 __ATOMIC_RELEASE);
	if (changed) {
		memset(at(tb, c->rule_cache), 0, 8ull * c->rule_cache_size);
		__atomic_fetch_add(&tb->block->generation, 1, __ATOMIC_RELEASE);
	}
	return 0;
}
