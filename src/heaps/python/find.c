/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds pymalloc's array of arenas in the data of the module that is Python.  A pointer leads to it,
 * and near that are its length and the number of arenas in it.  Each arena's pools have the arena's
 * number in their header, so that nothing else can be taken for it.
 */
#include "heaps/python/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/scan.h"

#define TEXT	   "PYTHONMALLOC" /* an environment variable, among Python's constants */
#define LEAST_DATA (128u << 10)	  /* bytes of data that Python has at least */
#define CHUNK	   (1u << 20)
#define NEAR	   128	      /* words around the pointer that can have the counters */
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

/* Checks objects [@from, @to) of the array.  Return: the number of arenas, or -1: it is none. */
static int64_t check_objects(struct image *img, const struct py_heap *h, uint64_t array,
			     uint32_t from, uint32_t to, struct image_view *v)
{
	int64_t n = 0;

	for (uint32_t i = from; i < to; i++) {
		const void *p = image_view(img, v, array + 48ull * i, sizeof(struct py_arena));
		struct py_arena a;

		if (!p)
			return -1;
		memcpy(&a, p, sizeof(a));
		if (!a.address)
			continue;
		/* The view is of other memory than the pools. */
		if (!python_arena_valid(img, h, &a) || !has_number(img, h, &a, i))
			return -1;
		n++;
	}
	return n;
}

static bool is_near(const struct scan_data *d, size_t i, uint64_t number)
{
	const size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < d->n ? i + NEAR : d->n;

	for (size_t k = from; k < to; k++) {
		if (d->words[k] == number)
			return true;
	}
	return false;
}

/* unsigned int: the other half of its word can be another variable. */
static bool is_near_half(const struct scan_data *d, size_t i, uint32_t number)
{
	const size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < d->n ? i + NEAR : d->n;

	for (size_t k = from; k < to; k++) {
		if ((uint32_t)d->words[k] == number || d->words[k] >> 32 == number)
			return true;
	}
	return false;
}

/* Is word @i of the data the pointer to the array?  The largest length that fits is right: a former
 * length would be too short for the number of arenas. */
static bool is_array(const struct scan_data *d, size_t i, struct py_heap *h)
{
	const uint64_t array = d->words[i];
	struct image_view v = {0};
	int64_t sum = 0, n;
	bool found = false;

	for (uint32_t done = 0, max = MIN_ARENAS; max <= MAX_ARENAS; done = max, max *= 2) {
		n = check_objects(d->img, h, array, done, max, &v);
		if (n < 0)
			break;
		sum += n;
		if (!sum || !is_near_half(d, i, max) || !is_near(d, i, (uint64_t)sum))
			continue;
		h->array = array;
		h->max = max;
		h->allocated = (uint32_t)sum;
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
		if (maybe_array(d, i, h) && is_array(d, i, h)) {
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
