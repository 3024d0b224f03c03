/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include "model/history/state.h"

#define AHEAD	   6u
#define TELL_EVERY 64u /* batches between two progress reports */

/* Keeps up with the chain of a block.  Return: 0 or -ENOMEM. */
static int follow_chain(struct history *h, const struct telling *t)
{
	const struct model_block *b = &t->block;

	if (vec_reach(&h->chains, b->chain))
		return -ENOMEM;
	if (t->what == TOLD_ENDED && t->begins_chain)
		h->chains.at[b->chain] = (struct history_chain){b->ordinal, b->time_ns, b->size, 1};
	if (t->what == TOLD_ALLOCATED)
		h->chains.at[b->chain].length++;
	return 0;
}

static int tell(struct history *h, const struct telling *t, const struct mp_event *ev)
{
	const struct history_sink *s = &h->sink;

	if (t->block.chain && follow_chain(h, t))
		return -ENOMEM;
	if (h->only.has && !h->only.drops && !h->only.has(h->only.ctx, &t->block))
		return 0;
	switch ((enum told)t->what) {
	case TOLD_ALLOCATED:
		return s->allocated ? s->allocated(s->ctx, &t->block) : 0;
	case TOLD_FAULTED:
		return s->faulted(s->ctx, &t->block);
	default:
		return s->ended ? s->ended(s->ctx, &t->block, ev, (enum block_end)t->how) : 0;
	}
}

/* Return: the next item that comes before event number @before. */
static int tell_items(struct history *h, const struct batch *b, uint32_t before, uint32_t *at)
{
	int ret = 0;

	for (; *at < b->items && b->item[*at].at <= before && !ret; ++*at)
		ret = h->sink.item ? h->sink.item(h->sink.ctx, &b->item[*at].item) : 0;
	return ret;
}

int history_tell_batch(struct history *h, const struct batch *b)
{
	const struct history_sink *s = &h->sink;
	uint32_t item = 0, told = 0;
	int ret = 0;

	for (uint32_t i = 0; i < b->events && !ret; i++) {
		if (item < b->items && b->item[item].at == i)
			ret = tell_items(h, b, i, &item);
		if (!ret && s->event)
			ret = s->event(s->ctx, &b->event[i]);
		for (; told < b->tellings && b->telling[told].event == i && !ret; told++) {
			if (s->ahead && told + AHEAD < b->tellings)
				s->ahead(s->ctx, b->telling[told + AHEAD].block.stack);
			ret = tell(h, &b->telling[told], &b->event[i]);
		}
	}
	if (!ret)
		ret = tell_items(h, b, b->events, &item);
	if (!ret && h->progress.tell && ++h->batches % TELL_EVERY == 0)
		h->progress.tell(h->progress.ctx, b->share);
	return ret;
}
