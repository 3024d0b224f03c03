/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/frozen.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK (64ull << 20)

/* Return: the first chunk that ends after @addr. */
static size_t find_chunk(const struct frozen *f, uint64_t addr)
{
	size_t lo = 0, hi = f->chunks.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->chunks.at[mid].start + CHUNK <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool holds(const struct frozen *f, size_t i, uint64_t addr)
{
	return i < f->chunks.n && f->chunks.at[i].start <= addr;
}

static int add_chunk(struct frozen *f, size_t i, uint64_t addr)
{
	struct frozen_chunk c = {.start = addr & ~(CHUNK - 1)};

	c.bytes = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c.bytes == MAP_FAILED)
		return -ENOMEM;
	if (vec_push(&f->chunks, c)) {
		munmap(c.bytes, CHUNK);
		return -ENOMEM;
	}
	memmove(f->chunks.at + i + 1, f->chunks.at + i,
		(f->chunks.n - 1 - i) * sizeof(f->chunks.at[0]));
	f->chunks.at[i] = c;
	return 0;
}

uint8_t *frozen_room(struct frozen *f, uint64_t addr, size_t *len)
{
	size_t i = find_chunk(f, addr);
	uint64_t at;

	if (!holds(f, i, addr) && add_chunk(f, i, addr))
		return NULL;
	at = addr - f->chunks.at[i].start;
	if (*len > CHUNK - at)
		*len = (size_t)(CHUNK - at);
	return f->chunks.at[i].bytes + at;
}

int frozen_show(struct frozen *f, uint64_t start, uint64_t end)
{
	if (f->runs.n && f->runs.at[f->runs.n - 1].end == start) {
		f->runs.at[f->runs.n - 1].end = end;
		return 0;
	}
	return vec_push(&f->runs, ((struct frozen_run){start, end}));
}

void frozen_hide(struct frozen *f)
{
	f->runs.n = 0;
}

void frozen_free(struct frozen *f)
{
	vec_for_each (&f->chunks, c)
		munmap(c->bytes, CHUNK);
	vec_free(&f->chunks);
	vec_free(&f->runs);
}

/* Return: the first run that ends after @addr, or NULL. */
static const struct frozen_run *run_after(const struct frozen *f, uint64_t addr)
{
	size_t lo = 0, hi = f->runs.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->runs.at[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->runs.n ? &f->runs.at[lo] : NULL;
}

static void copy_out(const struct frozen *f, uint64_t addr, uint8_t *to, size_t len)
{
	while (len) {
		const struct frozen_chunk *c = &f->chunks.at[find_chunk(f, addr)];
		uint64_t at = addr - c->start;
		size_t n = len < CHUNK - at ? len : (size_t)(CHUNK - at);

		memcpy(to, c->bytes + at, n);
		to += n;
		addr += n;
		len -= n;
	}
}

/* Reads from one map.  Bytes that were not present read as zeros in anonymous memory, else as in
 * the file. */
static size_t read_map(struct image *img, const struct image_map *m, uint64_t addr, uint8_t *to,
		       size_t len)
{
	const struct frozen *f = img->frozen;
	size_t done = 0;

	while (done < len) {
		const struct frozen_run *r = run_after(f, addr + done);
		uint64_t at = addr + done,
			 next = r && r->start < addr + len ? r->start : addr + len;
		bool here = r && r->start <= at;
		size_t n;

		if (here)
			next = r->end < addr + len ? r->end : addr + len;
		n = (size_t)(next - at);
		if (here)
			copy_out(f, at, to + done, n);
		else if (m->path[0] != '/')
			memset(to + done, 0, n);
		else if (f->below->fetch(img, at, to + done, n) != n)
			break;
		done += n;
	}
	return done;
}

static size_t frozen_read(struct image *img, uint64_t addr, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct image_map *m = image_map_at(img, addr + done);
		uint64_t left = m ? m->end - (addr + done) : 0;
		size_t want = len - done < left ? len - done : (size_t)left, got;

		if (!m)
			break;
		got = m->frozen
			  ? read_map(img, m, addr + done, (uint8_t *)to + done, want)
			  : img->frozen->below->fetch(img, addr + done, (uint8_t *)to + done, want);
		done += got;
		if (got < want)
			break;
	}
	return done;
}

static uint64_t frozen_present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	const struct frozen_run *r;

	if (!map->frozen)
		return img->frozen->below->present(img, map, addr);
	r = run_after(img->frozen, *addr);
	if (!r || r->start >= map->end)
		return 0;
	if (r->start > *addr)
		*addr = r->start;
	return r->end < map->end ? r->end : map->end;
}

void image_freeze(struct image *img, struct frozen *f)
{
	f->below = img->ops;
	f->ops = *img->ops;
	f->ops.fetch = frozen_read;
	f->ops.present = frozen_present;
	img->frozen = f;
	img->ops = &f->ops;
}
