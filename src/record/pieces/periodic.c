/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/periodic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record/aggregator.h"
#include "record/look_at_target.h"
#include "record/losses.h"

#define SLICE_NS       1000000000ull /* in the first minute */
#define LATER_SLICE_NS 10000000000ull
#define LATER_NS       60000000000ull
#define MOST_SUMS      (64u << 10) /* about 12 MiB */

void put_hooks_and_modules(struct aggregator *a)
{
	const struct ss_journal *j = a->config->journal;
	uint32_t names = __atomic_load_n(&j->nnames, __ATOMIC_ACQUIRE);
	struct mp_module m;

	while (a->hooks_written < names) {
		const struct ss_hook_name *h = &j->name[a->hooks_written++];
		char name[sizeof(h->name) + 1], module[sizeof(h->module) + 1];
		struct mp_hook_info info = {name, module, h->kind};

		snprintf(name, sizeof(name), "%.*s", (int)sizeof(h->name), h->name);
		snprintf(module, sizeof(module), "%.*s", (int)sizeof(h->module), h->module);
		mpf_put_hook(a->file, &info);
	}
	while (a->config->next_module(a->config->ctx, &m))
		mpf_put_module(a->file, &m);
}

/* Writes the sums of the culled blocks, which ends a slice. */
static void put_sums(struct aggregator *a, uint64_t now)
{
	int ret = 0;

	if (a->cull) {
		/* The names of hooks come before what refers to them. */
		put_hooks_and_modules(a);
		ret = cull_put_sums(a->cull, now);
	}
	a->next_slice_ns = now + (now < LATER_NS ? SLICE_NS : LATER_SLICE_NS);
	if (ret)
		a->now.error = ret;
}

void put_marks(struct aggregator *a, uint64_t now)
{
	VEC(char *) marks;

	/* The marks are written without the lock, since the disk can be slow. */
	pthread_mutex_lock(&a->shared->lock);
	memcpy(&marks, &a->shared->marks, sizeof(marks));
	memset(&a->shared->marks, 0, sizeof(a->shared->marks));
	pthread_mutex_unlock(&a->shared->lock);
	if (marks.n)
		put_sums(a, now);
	vec_for_each (&marks, name) {
		mpf_put_mark(a->file, now, *name);
		free(*name);
	}
	vec_free(&marks);
}

void limit_sums(struct aggregator *a)
{
	int ret;

	if (!a->cull || cull_count_sums(a->cull) < MOST_SUMS)
		return;
	put_hooks_and_modules(a);
	ret = cull_write_sums(a->cull);
	if (ret)
		a->now.error = ret;
}

void release_culled(struct aggregator *a, uint64_t now)
{
	int ret = a->cull ? cull_advance(a->cull, now) : 0;

	if (ret)
		a->now.error = ret;
	if (now >= a->next_slice_ns)
		put_sums(a, now);
}

void end_slice(struct aggregator *a, uint64_t now)
{
	int ret = a->cull ? cull_advance(a->cull, UINT64_MAX) : 0;

	if (ret)
		a->now.error = ret;
	put_sums(a, now);
}

void end_culling(struct aggregator *a, uint64_t now)
{
	end_slice(a, now);
	if (a->cull && levels_end(&a->levels, now, NULL, a->file))
		a->now.error = -EIO;
}

void each_second(struct aggregator *a, uint64_t now)
{
	struct mp_losses l;

	pthread_mutex_lock(&a->shared->clock_lock);
	clock_adjust(&a->shared->clock, a->order->until);
	pthread_mutex_unlock(&a->shared->clock_lock);
	put_hooks_and_modules(a);
	look_at_target(a, now);
	l = losses_now(a);
	mpf_put_losses(a->file, &l);
	a->now.error = mpf_flush(a->file);
}
