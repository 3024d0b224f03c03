/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the aggregator writes beside events: hooks, modules, marks, and once a second the state of the
 * target and the losses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record/internal.h"

void put_marks(struct recorder *r, uint64_t now)
{
	VEC(char *) marks;

	/* The marks are written without the lock, since the disk can be slow. */
	pthread_mutex_lock(&r->lock);
	memcpy(&marks, &r->marks, sizeof(marks));
	memset(&r->marks, 0, sizeof(r->marks));
	pthread_mutex_unlock(&r->lock);
	vec_for_each (&marks, name) {
		mpf_put_mark(r->file, now, *name);
		free(*name);
	}
	vec_free(&marks);
}

void put_hooks_and_modules(struct recorder *r)
{
	const struct ss_journal *j = r->config.journal;
	uint32_t names = __atomic_load_n(&j->nnames, __ATOMIC_ACQUIRE);
	struct mp_module m;

	while (r->hooks_written < names) {
		const struct ss_hook_name *h = &j->name[r->hooks_written++];
		char name[sizeof(h->name) + 1], module[sizeof(h->module) + 1];
		struct mp_hook_info info = {name, module, h->kind};

		snprintf(name, sizeof(name), "%.*s", (int)sizeof(h->name), h->name);
		snprintf(module, sizeof(module), "%.*s", (int)sizeof(h->module), h->module);
		mpf_put_hook(r->file, &info);
	}
	while (r->config.next_module(r->config.ctx, &m))
		mpf_put_module(r->file, &m);
}

void release_culled(struct recorder *r, uint64_t upto)
{
	int ret = r->cull ? cull_advance(r->cull, upto) : 0;

	if (r->cull && !ret)
		ret = cull_put_sums(r->cull);
	if (ret)
		r->now.error = ret;
}

void each_second(struct recorder *r, uint64_t now)
{
	struct mp_losses l;

	pthread_mutex_lock(&r->clock_lock);
	clock_adjust(&r->clock);
	pthread_mutex_unlock(&r->clock_lock);
	put_hooks_and_modules(r);
	release_culled(r, now);
	look_at_target(r, now);
	l = recorder_losses(r);
	mpf_put_losses(r->file, &l);
	r->now.error = mpf_flush(r->file);
}
