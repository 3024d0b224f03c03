/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds pymalloc's array of arenas: a pointer in the data of the module that is Python leads to it.
 * Its length follows from its contents.  Each arena's pools have the arena's number in their
 * header, so that nothing else can be taken for it.
 */
#include "heaps/python/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/scan.h"

#define TEXT	   "PYTHONMALLOC" /* an environment variable, among Python's constants */
#define LEAST_DATA (128u << 10)	  /* bytes of data that Python has at least */
#define CHUNK	   (1u << 20)
#define ARENA	   ((uint64_t)sizeof(struct py_arena))
#define MIN_ARENAS 16u	      /* INITIAL_ARENA_OBJECTS; it is doubled when full */
#define MAX_ARENAS (1u << 22) /* 4 TiB */

/* ------------------------------------------------------------- version -- */

/* Reads the minor version from "python3.11" at the start of @text.  Return: 0 if there is none. */
static uint32_t minor_of(const char *text, size_t n)
{
	static const char name[] = "python3.";
	const size_t length = sizeof(name) - 1;
	uint32_t minor = 0;
	size_t i;

	if (n < length || memcmp(text, name, length) != 0)
		return 0;
	for (i = length; i < n && i < length + 2 && text[i] >= '0' && text[i] <= '9'; i++)
		minor = 10 * minor + (uint32_t)(text[i] - '0');
	return minor;
}

/* The path of the standard library is among Python's constants: "lib/python3.11". */
static uint32_t minor_in(struct image *img, const struct image_map *m, char *buf)
{
	for (uint64_t at = m->start; at < m->end; at += CHUNK - 64) {
		size_t n =
		    image_read(img, at, buf, m->end - at < CHUNK ? (size_t)(m->end - at) : CHUNK);
		const char *p = buf;

		while ((p = memmem(p, n - (size_t)(p - buf), "lib/python3.", 12))) {
			uint32_t minor = minor_of(p + 4, n - (size_t)(p + 4 - buf));

			if (minor)
				return minor;
			p++;
		}
		if (n < CHUNK)
			break;
	}
	return 0;
}

static uint32_t minor_of_module(struct image *img, const struct image_map *module)
{
	const char *name = image_map_name(module), *p = strstr(name, "python3.");
	uint32_t minor = p ? minor_of(p, strlen(p)) : 0;
	char *buf = minor ? NULL : malloc(CHUNK);

	for (size_t i = 0; buf && i < img->maps.n && !minor; i++) {
		const struct image_map *m = &img->maps.at[i];

		if (m->read && !m->write && !strcmp(m->path, module->path))
			minor = minor_in(img, m, buf);
	}
	free(buf);
	return minor;
}

/* ------------------------------------------------------------- arenas -- */

bool python_arena_valid(const struct image *img, const struct py_heap *h, const struct py_arena *a)
{
	const uint64_t first = python_first_pool(h, a->address), end = a->address + h->arena_size,
		       pools = h->arena_size / h->pool_size - (first != a->address);

	return !(a->address % img->page_size) && !(a->address >> img->arch->address_bits) &&
	       a->ntotalpools == pools && a->nfreepools <= pools && a->pool_address >= first &&
	       a->pool_address <= first + pools * h->pool_size &&
	       a->pool_address % h->pool_size == 0 && scan_all_writable(img, a->address, end);
}

/* Does the first pool of arena @i, which is never returned to the kernel alone, say that it is of
 * arena @i? */
static bool has_number(struct image *img, const struct py_heap *h, const struct py_arena *a,
		       uint32_t i)
{
	const uint64_t first = python_first_pool(h, a->address);
	struct py_pool pool;

	return a->pool_address > first && image_read_all(img, first, &pool, sizeof(pool)) &&
	       pool.arenaindex == i && pool.szidx < 32;
}

/* What the arena objects of an array are. */
struct array_sum {
	uint32_t used, unused, ends; /* ends: unused ones that are the last in the list of these */
	uint64_t highest;	     /* address to which that list leads */
};

/* Checks objects [@from, @to) of the array.  Return: false if one of them is none. */
static bool check_objects(struct image *img, const struct py_heap *h, uint64_t array, uint32_t from,
			  uint32_t to, struct image_view *v, struct array_sum *sum)
{
	for (uint32_t i = from; i < to; i++) {
		const void *p = image_view(img, v, array + ARENA * i, ARENA);
		struct py_arena a;

		if (!p)
			return false;
		memcpy(&a, p, sizeof(a));
		if (a.address) {
			if (!python_arena_valid(img, h, &a) || !has_number(img, h, &a, i))
				return false;
			sum->used++;
			continue;
		}
		if (a.nextarena && (a.nextarena < array || (a.nextarena - array) % ARENA))
			return false;
		sum->unused++;
		sum->ends += !a.nextarena;
		if (a.nextarena > sum->highest)
			sum->highest = a.nextarena;
	}
	return true;
}

/* Is there an array at @array?  Those of its objects that are not in use form one list. */
static bool is_array(struct image *img, uint64_t array, struct py_heap *h)
{
	struct array_sum sum = {0};
	struct image_view v = {0};
	bool found = false;

	for (uint32_t done = 0, max = MIN_ARENAS; max <= MAX_ARENAS; done = max, max *= 2) {
		if (!check_objects(img, h, array, done, max, &v, &sum))
			break;
		if (!sum.used || sum.ends != (sum.unused > 0) || sum.highest >= array + ARENA * max)
			continue;
		h->array = array;
		h->max = max;
		h->allocated = sum.used;
		found = true;
	}
	image_view_free(&v);
	return found;
}

/* Refuses most words before much is read: one of the first arenas is nearly always in use. */
static bool maybe_array(const struct scan_data *d, size_t i, const struct py_heap *h)
{
	const uint64_t array = d->words[i];
	struct py_arena a[MIN_ARENAS];
	bool one = false;

	if (!array || array % 16 || array >> d->img->arch->address_bits ||
	    !scan_writable(d->img, array) || !image_read_all(d->img, array, a, sizeof(a)))
		return false;
	for (uint32_t k = 0; k < MIN_ARENAS; k++) {
		if (a[k].address && !python_arena_valid(d->img, h, &a[k]))
			return false;
		one |= a[k].address != 0;
	}
	return one;
}

struct finder {
	struct py_heap *h;
	int found; /* as python_find() returns */
};

static int visit(const struct scan_data *d, void *arg)
{
	struct finder *f = arg;
	const struct image_map *m = image_map_at(d->img, d->start);
	struct py_heap *h = f->h;

	h->minor = m ? minor_of_module(d->img, m) : 0;
	if (!h->minor)
		return 0;
	h->free_threaded = strstr(image_map_name(m), "python3.13t") != NULL;
	if (h->minor < PY_OLDEST || h->minor > PY_NEWEST || h->free_threaded) {
		f->found = -ENOTSUP;
		return 1;
	}
	h->arena_size = h->minor == 9 ? 256ull << 10 : 1ull << 20;
	h->pool_size = h->minor == 9 ? 4ull << 10 : 16ull << 10;
	for (size_t i = 0; i < d->n; i++) {
		if (maybe_array(d, i, h) && is_array(d->img, d->words[i], h)) {
			f->found = 0;
			return 1;
		}
	}
	return 0;
}

int python_find(struct image *img, struct py_heap *h)
{
	struct finder f = {h, -ENOENT};
	int ret;

	memset(h, 0, sizeof(*h));
	ret = scan_modules_with(img, TEXT, LEAST_DATA, visit, &f);
	return ret < 0 ? ret : f.found;
}
