/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/census.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "heaps/named.h"
#include "heaps/walker.h"
#include "lib/by_number.h"

static int run_walker(struct census *c, struct image *img, const struct walker *w,
		      struct mp_err *err)
{
	struct heap h = {0};
	struct mp_err why = {0};
	int ret = walker_run(w, img, &h, &why);

	if (!ret)
		ret = vec_push(&c->heaps, h);
	if (!ret)
		return 0;
	heap_free(&h);
	if (ret == -ENOENT)
		return 0;
	if (ret == -ENOMEM)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the list of blocks");
	snprintf(c->unknown, sizeof(c->unknown), "%.399s",
		 why.what[0] ? why.what : "an allocator could not be read");
	return 0;
}

/* Names an allocator that has no walker, if no other one is named. */
static void name_other(struct census *c, struct image *img)
{
	const char *name = c->unknown[0] ? NULL : named_find(img);

	if (name)
		snprintf(c->unknown, sizeof(c->unknown),
			 "the process has %s, whose blocks memprof cannot list", name);
}

/* Moves the list of blocks if there is only one heap; else joins the lists. */
static int join_heaps(struct census *c)
{
	vec_for_each (&c->heaps, h) {
		vec_for_each (&h->skipped, r) {
			if (vec_push(&c->skipped, *r))
				return -ENOMEM;
		}
		vec_for_each (&h->owned, r) {
			if (vec_push(&c->owned, *r))
				return -ENOMEM;
		}
		if (!c->blocks.n) {
			memcpy(&c->blocks, &h->blocks, sizeof(c->blocks));
			memset(&h->blocks, 0, sizeof(h->blocks));
			continue;
		}
		vec_for_each (&h->blocks, b) {
			if (vec_push(&c->blocks, *b))
				return -ENOMEM;
		}
		vec_free(&h->blocks);
	}
	if (c->heaps.n > 1) {
		vec_sort(&c->blocks, by_number);
		vec_sort(&c->owned, by_number);
	}
	return 0;
}

/* Are the registers of all threads known? */
static bool all_seen(const struct image *img)
{
	vec_for_each (&img->threads, th) {
		if (!th->has_regs && !th->had_regs)
			return false;
	}
	return true;
}

/* Memory that is not of one moment can look damaged, and proves nothing. */
static void doubt_torn(struct heap *h, const struct image *img)
{
	char why[sizeof(h->doubt)];

	memcpy(why, h->doubt, sizeof(why));
	h->exact = false;
	heap_was_changing(h);
	snprintf(h->doubt, sizeof(h->doubt), "threads ran while it was copied (--gentle)%s%s%.160s",
		 all_seen(img) ? "" : ", some were not seen", why[0] ? "; perhaps therefore " : "",
		 why);
}

int census_take(struct census *c, struct image *img, struct mp_err *err)
{
	int ret = 0;

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; walkers[i] && !ret; i++)
		ret = run_walker(c, img, walkers[i], err);
	if (ret)
		return ret;
	if (!c->heaps.n && c->unknown[0])
		return mp_fail(err, MP_EXIT_NO_ALLOCATOR, -ENOENT, "%s", c->unknown);
	if (!c->heaps.n)
		return mp_fail(err, MP_EXIT_NO_ALLOCATOR, -ENOENT,
			       "no allocator that memprof knows has a block in process %d",
			       img->pid);
	name_other(c, img);
	vec_for_each (&c->heaps, h) {
		if (img->torn)
			doubt_torn(h, img);
	}
	c->exact = !c->unknown[0];
	vec_for_each (&c->heaps, h) {
		c->exact &= h->exact;
		c->busy |= h->busy;
		c->passing |= h->passing;
	}
	ret = join_heaps(c);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the list of blocks") : 0;
}

void census_free(struct census *c)
{
	vec_for_each (&c->heaps, h)
		heap_free(h);
	vec_free(&c->heaps);
	vec_free(&c->blocks);
	vec_free(&c->owned);
	vec_free(&c->skipped);
}

uint64_t census_live_bytes(const struct census *c)
{
	uint64_t sum = 0;

	vec_for_each (&c->heaps, h)
		sum += h->live_bytes;
	return sum;
}
