/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/resident.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/pagemap.h"
#include "attach/proc/procfs.h"

struct taker {
	struct resident *a;
	const struct resident_stacks *stacks;
	const struct census *c;
	size_t block, range; /* the first that can overlap the page; pages ascend */
	uint32_t page_size;
	struct pagemap pages;
};

static uint64_t overlap(const struct taker *t, uint64_t start, uint64_t end, uint64_t page)
{
	uint64_t from = start > page ? start : page;
	uint64_t to = end < page + t->page_size ? end : page + t->page_size;

	return to > from ? to - from : 0;
}

/* Bytes of @page that live blocks occupy. */
static uint64_t live_in(struct taker *t, uint64_t page)
{
	uint64_t sum = 0;
	size_t i;

	while (t->block < t->c->blocks.n &&
	       t->c->blocks.at[t->block].addr + t->c->blocks.at[t->block].size <= page)
		t->block++;
	for (i = t->block; i < t->c->blocks.n && t->c->blocks.at[i].addr < page + t->page_size; i++)
		sum += overlap(t, t->c->blocks.at[i].addr,
			       t->c->blocks.at[i].addr + t->c->blocks.at[i].size, page);
	return sum;
}

static uint64_t owned_in(struct taker *t, uint64_t page)
{
	uint64_t sum = 0;

	while (t->range < t->c->owned.n && t->c->owned.at[t->range].end <= page)
		t->range++;
	for (size_t i = t->range;
	     i < t->c->owned.n && t->c->owned.at[i].start < page + t->page_size; i++)
		sum += overlap(t, t->c->owned.at[i].start, t->c->owned.at[i].end, page);
	return sum < t->page_size ? sum : t->page_size;
}

static bool is_stack(const struct taker *t, const struct map *m)
{
	if (!strcmp(m->path, "[stack]"))
		return true;
	vec_for_each (&t->stacks->sp, sp) {
		if (*sp >= m->start && *sp < m->end)
			return true;
	}
	return false;
}

static bool is_module(const struct maps *maps, const struct map *m)
{
	vec_for_each (&maps->list, other) {
		if (other->exec && other->ino == m->ino && !strcmp(other->path, m->path))
			return true;
	}
	return false;
}

/* Return: the counter for pages of @m that no heap owns. */
static uint64_t *part_of(struct taker *t, const struct maps *maps, const struct map *m)
{
	if (m->path[0] == '/' && !strncmp(m->path, "/dev/", 5))
		return &t->a->shared;
	if (m->path[0] == '/' && m->shared && strstr(m->path, " (deleted)"))
		return &t->a->shared;
	if (m->path[0] == '/' && is_module(maps, m))
		return m->exec || !m->write ? &t->a->modules_text : &t->a->modules_data;
	if (m->path[0] == '/')
		return &t->a->files;
	if (m->shared)
		return &t->a->shared;
	if (is_stack(t, m))
		return &t->a->stacks;
	/* .bss follows the data of its module. */
	if (!m->path[0] && m > maps->list.at && m[-1].end == m->start && m[-1].path[0] == '/' &&
	    m[-1].write)
		return &t->a->modules_data;
	return &t->a->anonymous;
}

static void take_page(struct taker *t, uint64_t page, uint64_t *part)
{
	uint64_t owned = owned_in(t, page), live = owned ? live_in(t, page) : 0;

	t->a->live += live;
	t->a->free += owned > live ? owned - live : 0;
	*part += t->page_size - (owned > live ? owned : live);
	t->a->total += t->page_size;
}

static void take_map(struct taker *t, const struct maps *maps, const struct map *m)
{
	uint64_t *part = part_of(t, maps, m);
	struct page_run run = {.end = m->start};

	while (pagemap_next(&t->pages, run.end, m->end, &run)) {
		if (run.swapped)
			t->a->swap += run.end - run.start;
		for (uint64_t at = run.start; !run.swapped && at < run.end; at += t->page_size)
			take_page(t, at, part);
	}
}

/* Splits the free part of heaps, as far as allocators report it. */
static void split_free(struct resident *a, const struct census *c)
{
	uint64_t live = 0;

	vec_for_each (&c->heaps, h) {
		uint64_t metadata = h->metadata_bytes < a->free ? h->metadata_bytes : a->free,
			 cached;

		a->metadata += metadata;
		a->free -= metadata;
		cached = h->cached_bytes < a->free ? h->cached_bytes : a->free;
		a->cached += cached;
		a->free -= cached;
		live += h->live_bytes;
	}
	a->live_untouched = live > a->live ? live - a->live : 0;
}

int resident_stacks(struct resident_stacks *s, const struct image *img)
{
	vec_for_each (&img->threads, th) {
		if (th->has_regs && vec_push(&s->sp, img->arch->regs.get_sp(&th->regs)))
			return -ENOMEM;
	}
	return 0;
}

int resident_take(struct resident *a, pid_t pid, const struct resident_stacks *stacks,
		  const struct census *c, struct mp_err *err)
{
	struct taker t = {
	    .a = a, .stacks = stacks, .c = c, .page_size = (uint32_t)sysconf(_SC_PAGESIZE)};
	struct proc_rollup rollup = {0};
	struct maps maps = {0};
	int ret;

	memset(a, 0, sizeof(*a));
	ret = pagemap_open(&t.pages, pid);
	if (!ret)
		ret = maps_read(pid, &maps);
	if (ret) {
		pagemap_close(&t.pages);
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot read maps and pagemap of process %d: %s", pid,
			       strerror(-ret));
	}
	a->rss = proc_rollup_read(pid, &rollup) ? 0 : rollup.rss;
	vec_for_each (&maps.list, m)
		take_map(&t, &maps, m);
	split_free(a, c);
	maps_free(&maps);
	pagemap_close(&t.pages);
	return 0;
}
