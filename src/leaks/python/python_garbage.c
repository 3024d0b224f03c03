/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/python/python_garbage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/python/python.h"

#define BUFFER	 (1u << 16)
#define IMMORTAL (1 << 29) /* from 3.12 on, some objects are never freed, and not counted */

struct sorter {
	const struct graph *g;
	const struct leaks *l;
	struct image *img;
	/* By block: references that were counted, but not found in unreachable blocks. */
	int32_t *lost;
	uint8_t *buf;
	VEC(uint32_t) queue;
};

static bool unreached(const struct sorter *s, uint32_t block)
{
	return s->l->owner[block] != 0;
}

static int32_t references(const struct sorter *s, uint32_t block)
{
	uint64_t count;

	if (!image_read_all(s->img, python_start(s->g->python, block), &count, sizeof(count)) ||
	    count > IMMORTAL)
		return 0;
	return (int32_t)count;
}

/* Does the collector know of the object, so that it can free a ring of such? */
static bool tracked(const struct sorter *s, uint32_t block)
{
	const struct python_type *t = python_type(s->g->python, block);
	uint64_t next;

	return t && t->gc &&
	       image_read_all(s->img, python_start(s->g->python, block) - 16, &next,
			      sizeof(next)) &&
	       next;
}

static void count_word(const struct sorter *s, uint64_t word)
{
	/* Low bits can be tags. */
	const uint64_t value = word & ~7ull;
	const uint32_t to = index_find(&s->g->index, value);

	if (to != INDEX_NONE && unreached(s, to) && value == python_start(s->g->python, to))
		s->lost[to]--;
}

static void count_part(const struct sorter *s, uint64_t from, uint64_t to)
{
	from = (from + 7) & ~7ull;
	while (from + 8 <= to) {
		size_t want = to - from < BUFFER ? (size_t)(to - from) : BUFFER;
		size_t got = image_read(s->img, from, s->buf, want) & ~(size_t)7;
		uint64_t word;

		if (!got)
			return;
		for (size_t i = 0; i < got; i += 8) {
			memcpy(&word, s->buf + i, 8);
			count_word(s, word);
		}
		from += got;
	}
}

static void count_block(const struct sorter *s, uint32_t block)
{
	const struct heap_block *b = &s->g->block[block];
	struct heap_range hidden[PYTHON_HIDDEN];
	unsigned int n = python_hidden(s->g->python, block, hidden);
	uint64_t from = b->addr;

	for (unsigned int i = 0; i < n; i++) {
		count_part(s, from, hidden[i].start);
		from = hidden[i].end;
	}
	count_part(s, from, b->addr + b->size);
}

/* Follows edges from the queued blocks to blocks not yet in @seen, nor in @except. */
static int spread(struct sorter *s, uint8_t *seen, const uint8_t *except)
{
	for (size_t next = 0; next < s->queue.n; next++) {
		const uint32_t b = s->queue.at[next];

		for (uint32_t e = s->g->first[b]; e < s->g->first[b + 1]; e++) {
			const uint32_t to = s->g->to.at[e];

			if (seen[to] || !unreached(s, to) || (except && except[to]))
				continue;
			seen[to] = 1;
			if (vec_push(&s->queue, to))
				return -ENOMEM;
		}
	}
	s->queue.n = 0;
	return 0;
}

/* Marks in @leaked what objects with lost references keep. */
static int find_leaked(struct sorter *s, uint8_t *leaked)
{
	for (uint32_t i = 0; i < s->g->n; i++) {
		if (unreached(s, i) && s->g->python->type[i])
			s->lost[i] += references(s, i);
		if (unreached(s, i))
			count_block(s, i);
	}
	for (uint32_t i = 0; i < s->g->n; i++) {
		if (!unreached(s, i) || !s->g->python->type[i] || s->lost[i] <= 0)
			continue;
		leaked[i] = 1;
		if (vec_push(&s->queue, i))
			return -ENOMEM;
	}
	return spread(s, leaked, NULL);
}

/* Marks in @garbage what the collector, or a thread that is freeing an object, will free. */
static int find_garbage(struct sorter *s, const uint8_t *leaked, uint8_t *garbage)
{
	for (uint32_t i = 0; i < s->g->n; i++) {
		if (!unreached(s, i) || leaked[i] || !s->g->python->type[i] ||
		    (!tracked(s, i) && references(s, i)))
			continue;
		garbage[i] = 1;
		if (vec_push(&s->queue, i))
			return -ENOMEM;
	}
	return spread(s, garbage, leaked);
}

static int drop_garbage(struct sorter *s, struct leaks *l, const uint8_t *garbage)
{
	uint32_t *keep = calloc(l->direct.n + 1, sizeof(*keep));
	uint32_t count = l->total_count;
	uint64_t bytes = l->total_bytes;

	if (!keep)
		return -ENOMEM;
	for (size_t i = 0; i < l->direct.n; i++)
		keep[i] = !garbage[l->direct.at[i].block];
	leaks_keep(l, s->g, keep);
	l->garbage_count = count - l->total_count;
	l->garbage_bytes = bytes - l->total_bytes;
	free(keep);
	return 0;
}

int python_garbage(struct leaks *l, const struct graph *g, struct image *img)
{
	struct sorter s = {.g = g, .l = l, .img = img};
	uint8_t *leaked, *garbage;
	int ret = -ENOMEM;

	if (!g->python || !l->total_count)
		return 0;
	s.lost = calloc(g->n + 1ull, sizeof(*s.lost));
	s.buf = malloc(BUFFER);
	leaked = calloc(g->n + 1ull, 1);
	garbage = calloc(g->n + 1ull, 1);
	if (s.lost && s.buf && leaked && garbage)
		ret = find_leaked(&s, leaked);
	if (!ret)
		ret = find_garbage(&s, leaked, garbage);
	if (!ret)
		ret = drop_garbage(&s, l, garbage);
	vec_free(&s.queue);
	free(s.lost);
	free(s.buf);
	free(leaked);
	free(garbage);
	return ret;
}
