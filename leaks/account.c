/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/account.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/procfs.h"

#define PAGEMAP_HERE (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_SWAP (1ull << 62)
#define CHUNK	     4096 /* pages asked for at once */

struct taker {
	struct account *a;
	const struct image *img;
	const struct census *c;
	size_t block, range; /* the first that may reach the page; pages come in order */
	uint32_t page_size;
	int fd;
};

static uint64_t overlap(const struct taker *t, uint64_t start, uint64_t end, uint64_t page)
{
	uint64_t from = start > page ? start : page;
	uint64_t to = end < page + t->page_size ? end : page + t->page_size;

	return to > from ? to - from : 0;
}

/* Bytes of @page that live blocks take. */
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
	vec_for_each (&t->img->threads, th) {
		uint64_t sp = th->has_regs ? t->img->arch->get_sp(&th->regs) : 0;

		if (sp >= m->start && sp < m->end)
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

/* Where pages of @m count that no heap owns. */
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
	/* .bss lies behind the data of its module. */
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
	uint64_t entry[CHUNK], *part = part_of(t, maps, m);

	for (uint64_t at = m->start; at < m->end;) {
		uint64_t left = (m->end - at) / t->page_size;
		size_t want = (left < CHUNK ? (size_t)left : CHUNK) * sizeof(entry[0]);
		ssize_t got =
		    pread(t->fd, entry, want, (off_t)(at / t->page_size * sizeof(entry[0])));

		if (got < (ssize_t)sizeof(entry[0]))
			return;
		for (size_t i = 0; i < (size_t)got / sizeof(entry[0]); i++, at += t->page_size) {
			if (entry[i] & PAGEMAP_HERE)
				take_page(t, at, part);
			else if (entry[i] & PAGEMAP_SWAP)
				t->a->swap += t->page_size;
		}
	}
}

/* What the free part of heaps is made of, as far as allocators tell. */
static void split_free(struct account *a, const struct census *c)
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

int account_take(struct account *a, const struct image *img, const struct census *c,
		 struct mp_err *err)
{
	struct taker t = {.a = a, .img = img, .c = c, .page_size = img->page_size};
	struct proc_rollup rollup = {0};
	struct maps maps = {0};
	char path[64];
	int ret;

	memset(a, 0, sizeof(*a));
	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_of(img->pid));
	t.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t.fd < 0)
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot read %s: %s", path,
			       strerror(errno));
	ret = maps_read(img->pid, &maps);
	if (ret) {
		close(t.fd);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot read %s: %s", path,
			       strerror(-ret));
	}
	proc_rollup_read(img->pid, &rollup);
	a->rss = rollup.rss;
	vec_for_each (&maps.list, m)
		take_map(&t, &maps, m);
	split_free(a, c);
	maps_free(&maps);
	close(t.fd);
	return 0;
}
