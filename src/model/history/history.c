/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/stages.h"
#include "model/history/state.h"

#define BATCHES 4u /* in memory at a time */

static int add_spaces(struct history *h, uint32_t n)
{
	struct space *more = n > h->nspaces ? reallocarray(h->space, n, sizeof(*more)) : h->space;

	if (!more)
		return -ENOMEM;
	h->space = more;
	for (; h->nspaces < n; h->nspaces++)
		h->space[h->nspaces] =
		    (struct space){.live = {.without_moments = h->sink.without_moments,
					    .process = (uint16_t)h->nspaces}};
	return 0;
}

struct history *history_new(const struct history_sink *sink)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->sink = *sink;
	if (!add_spaces(h, 1))
		return h;
	history_free(h);
	return NULL;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->nspaces; i++) {
		live_blocks_free(&h->space[i].live);
		vec_free(&h->space[i].threads);
		tids_free(&h->space[i].tids);
	}
	free(h->space);
	vec_free(&h->chains);
	vec_free(&h->unused_chains);
	free(h);
}

const struct history_counts *history_counts(const struct history *h)
{
	return &h->counts;
}

void history_select(struct history *h, const struct history_filter *f)
{
	h->only = *f;
}

void history_tell(struct history *h, const struct history_progress *p)
{
	h->progress = *p;
}

struct history_chain history_chain(const struct history *h, const struct model_block *b)
{
	if (b->chain)
		return h->chains.at[b->chain];
	return (struct history_chain){b->ordinal, b->time_ns, b->size, 1};
}

/* ------------------------------------------------------------------ reading -- */

struct reading {
	struct history *h;
	struct batch *batch; /* BATCHES */
	struct batch_reader from;
};

static bool read_stage(void *arg, unsigned int stage, unsigned int slot)
{
	struct reading *r = arg;
	struct batch *b = &r->batch[slot];

	switch (stage) {
	case 0:
		batch_read(b, &r->from);
		break;
	case 1:
		history_apply(r->h, b);
		break;
	default:
		r->h->tell_ret = history_tell_batch(r->h, b);
		return !r->h->tell_ret && !b->last;
	}
	return !b->last;
}

static int failed(int ret, struct mp_err *err)
{
	if (ret >= 0)
		return 0;
	return mp_fail(err, MP_EXIT_RECORDING, ret, "cannot load the recording: %s",
		       strerror(-ret));
}

/* Return: 0, or the first thing that went wrong in the order of the recording. */
static int result(const struct reading *r, struct mp_err *err)
{
	if (r->h->tell_ret || r->h->apply_ret)
		return failed(r->h->tell_ret ? r->h->tell_ret : r->h->apply_ret, err);
	if (r->from.ret && err)
		*err = r->from.err;
	return r->from.ret;
}

int history_read(struct history *h, struct mpf_reader *r, const struct history_until *until,
		 struct mp_err *err)
{
	struct reading reading = {
	    .h = h, .batch = calloc(BATCHES, sizeof(struct batch)), .from = {.r = r}};
	const struct stages stages = {
	    .n = 3, .slots = BATCHES, .work = read_stage, .arg = &reading};
	int ret;

	if (!reading.batch || add_spaces(h, mpf_processes(r))) {
		free(reading.batch);
		return failed(-ENOMEM, err);
	}
	if (h->nspaces == 1)
		live_blocks_expect(&h->space[0].live, mpf_peak_blocks(r));
	if (until)
		h->until = *until;
	stages_run(&stages);
	ret = result(&reading, err);
	for (unsigned int i = 0; i < BATCHES; i++)
		batch_release(&reading.batch[i]);
	free(reading.batch);
	return ret;
}

/* ------------------------------------------------------------------ what is live -- */

/* What history_live() passes blocks on to. */
struct listener {
	const struct history *h;
	int (*each)(void *ctx, const struct model_block *b);
	void *ctx;
};

static int pass_on(void *ctx, const struct model_block *b)
{
	const struct listener *l = ctx;
	const struct history_filter *only = &l->h->only;

	return !only->has || only->drops || only->has(only->ctx, b) ? l->each(l->ctx, b) : 0;
}

static int space_live(struct listener *l, const struct space *s)
{
	int ret = live_blocks_each(&s->live, pass_on, l);

	vec_for_each (&s->threads, t) {
		struct model_block b = t->block;

		b.in_realloc = t->tid;
		if (!ret && t->in_realloc && t->known)
			ret = pass_on(l, &b);
	}
	return ret;
}

int history_live(const struct history *h, int (*each)(void *ctx, const struct model_block *b),
		 void *ctx)
{
	struct listener l = {h, each, ctx};
	int ret = 0;

	for (uint32_t i = 0; !ret && i < h->nspaces; i++)
		ret = space_live(&l, &h->space[i]);
	return ret;
}
