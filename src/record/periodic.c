/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/periodic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record/aggregator.h"
#include "record/look_at_target.h"
#include "record/losses.h"

void put_marks(struct aggregator *a, uint64_t now)
{
	VEC(char *) marks;

	/* The marks are written without the lock, since the disk can be slow. */
	pthread_mutex_lock(&a->shared->lock);
	memcpy(&marks, &a->shared->marks, sizeof(marks));
	memset(&a->shared->marks, 0, sizeof(a->shared->marks));
	pthread_mutex_unlock(&a->shared->lock);
	vec_for_each (&marks, name) {
		mpf_put_mark(a->file, now, *name);
		free(*name);
	}
	vec_free(&marks);
}

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

void release_culled(struct aggregator *a, uint64_t upto)
{
	int ret = a->cull ? cull_advance(a->cull, upto) : 0;

	if (a->cull && !ret)
		ret = cull_put_sums(a->cull);
	if (ret)
		a->now.error = ret;
}

void each_second(struct aggregator *a, uint64_t now)
{
	struct mp_losses l;

	pthread_mutex_lock(&a->shared->clock_lock);
	clock_adjust(&a->shared->clock);
	pthread_mutex_unlock(&a->shared->clock_lock);
	put_hooks_and_modules(a);
	release_culled(a, now);
	look_at_target(a, now);
	l = losses_now(a);
	mpf_put_losses(a->file, &l);
	a->now.error = mpf_flush(a->file);
}
