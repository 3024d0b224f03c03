/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/view.h"

#include <errno.h>
#include "attach/proc/procfs.h"
#include "record/aggregator.h"
#include "record/look_at_target.h"
#include "record/losses.h"
#include "record/reader.h"
#include "record/stacks/stack_ids.h"

static void put_stacks(struct aggregator *a, struct mpf_writer *file, uint32_t from)
{
	for (uint32_t id = 0; id < a->stacks.n; id++) {
		struct stack_level live = levels_of(&a->levels, id);
		struct tally t =
		    id < a->tallies.stacks.n ? a->tallies.stacks.at[id] : (struct tally){0};
		double variance = tallies_variance(&a->tallies, id);

		if (id && id >= from)
			stack_put(a, id, file);
		if (live.live_blocks)
			mpf_put_live(file, id, live.live_bytes, live.live_blocks);
		/* Rounding errors remain when the last block with a weight has ended. */
		if (variance < 0.5)
			variance = 0;
		if (t.allocations || variance > 0)
			mpf_put_activity(file,
					 &(struct mp_activity){id, t.allocations, t.allocated_bytes,
							       t.temporary, t.temporary_bytes,
							       variance},
					 false);
	}
}

static void put_index(struct aggregator *a, struct mpf_writer *file, uint32_t from)
{
	const struct mp_totals totals = {a->now.events,
					 a->now.allocs,
					 a->now.allocated_bytes,
					 a->now.frees,
					 a->levels.section.live_bytes,
					 a->levels.section.live_blocks};

	mpf_begin_index(file);
	a->config->rotation.ending.modules(a->config->ctx, file);
	mpf_put_totals(file, &totals);
	put_stacks(a, file, from);
	vec_for_each (&a->tallies.threads, t)
		mpf_put_activity(file,
				 &(struct mp_activity){.id = t->tid,
						       .allocations = t->allocations,
						       .allocated_bytes = t->allocated_bytes,
						       .temporary = t->temporary},
				 true);
	mpf_end_index(file);
}

void view_fill(struct aggregator *a, struct view *v, uint64_t until_ns, uint64_t now)
{
	struct piece_end *e = &v->end;

	put_index(a, e->file, v->from);
	put_names(a, e->file);
	if (a->sample.time_ns)
		mpf_put_sample(e->file, &a->sample);
	if (v->from < a->stacks.n)
		e->pc = stacks_addresses(&a->stacks, v->from, 0, &e->n);
	e->losses = losses_now(a);
	e->finish = (struct mp_finish){.end_ns = now, .peak_live_bytes = a->now.peak_live_bytes};
	/* Else the peak was in an earlier piece. */
	if (a->levels.peak.bytes == a->now.peak_live_bytes) {
		e->finish.peak_live_blocks = a->levels.peak.blocks;
		e->finish.peak_time_ns = a->levels.peak.time_ns;
	}
	v->behind_ns = now > until_ns ? now - until_ns : 0;
}

void view_put(struct aggregator *a, uint64_t until_ns, uint64_t now)
{
	struct recorder_shared *s = a->shared;
	struct view *v;

	if (!__atomic_load_n(&s->view_wanted, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&s->lock);
	v = s->view;
	pthread_mutex_unlock(&s->lock);
	if (!v || v->done)
		return;
	view_fill(a, v, until_ns, now);
	pthread_mutex_lock(&s->lock);
	v->done = true;
	pthread_cond_broadcast(&s->flushed);
	pthread_mutex_unlock(&s->lock);
}

int view_take(struct recorder_shared *s, struct ss_control *block, struct view *v)
{
	pthread_mutex_lock(&s->lock);
	while (s->view)
		pthread_cond_wait(&s->flushed, &s->lock);
	s->view = v;
	__atomic_store_n(&s->view_wanted, true, __ATOMIC_RELEASE);
	reader_wake(block);
	while (!v->done && !s->ended)
		pthread_cond_wait(&s->flushed, &s->lock);
	s->view = NULL;
	__atomic_store_n(&s->view_wanted, false, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&s->flushed);
	pthread_mutex_unlock(&s->lock);
	return v->done ? 0 : -ESHUTDOWN;
}
