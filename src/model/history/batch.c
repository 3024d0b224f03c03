/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/history/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (64u << 10)

/* ------------------------------------------------------------------ the memory of an item -- */

/* With @b NULL, only counts the bytes. */
static const void *keep(struct batch *b, size_t *need, const void *p, size_t n)
{
	size_t size = (n + 7) & ~(size_t)7;
	void *own;

	*need += size;
	if (!b || !p)
		return p;
	own = b->room + b->used;
	memcpy(own, p, n);
	b->used += size;
	return own;
}

static void keep_text(struct batch *b, size_t *need, const char **text)
{
	*text = keep(b, need, *text, *text ? strlen(*text) + 1 : 0);
}

static void keep_symbols(struct batch *b, size_t *need, struct mpf_item *it)
{
	const struct mp_symbol *at = keep(b, need, it->symbols.at, it->symbols.n * sizeof(*at));

	for (uint32_t i = 0; i < it->symbols.n; i++) {
		struct mp_symbol s = at[i];

		keep_text(b, need, &s.function);
		keep_text(b, need, &s.raw_function);
		keep_text(b, need, &s.source);
		if (b)
			((struct mp_symbol *)at)[i] = s;
	}
	it->symbols.at = at;
}

/* Makes what @it points to that of @b, which has room for it; with @b NULL, changes nothing.  Return: the
 * bytes of it. */
static size_t keep_all(struct batch *b, struct mpf_item *it)
{
	size_t need = 0;

	switch (it->kind) {
	case MPF_HOOK:
		keep_text(b, &need, &it->hook.name);
		keep_text(b, &need, &it->hook.module);
		break;
	case MPF_MODULE:
		keep_text(b, &need, &it->module.path);
		break;
	case MPF_THREAD:
		keep_text(b, &need, &it->thread.name);
		break;
	case MPF_STACK:
		it->stack.pc = keep(b, &need, it->stack.pc, it->stack.n * sizeof(*it->stack.pc));
		break;
	case MPF_SYMBOLS:
		keep_symbols(b, &need, it);
		break;
	case MPF_MAP_USAGE:
		keep_text(b, &need, &it->map_usage.path);
		break;
	case MPF_PROCESS:
		keep_text(b, &need, &it->process.executable);
		keep_text(b, &need, &it->process.cmdline);
		break;
	case MPF_MARK:
		keep_text(b, &need, &it->mark.name);
		break;
	default:
		break;
	}
	return need;
}

static int make_room(struct batch *b, size_t n)
{
	size_t cap = n > ROOM ? n : ROOM;
	char *more;

	if (n <= b->cap)
		return 0;
	more = realloc(b->room, cap);
	if (!more)
		return -ENOMEM;
	b->room = more;
	b->cap = cap;
	return 0;
}

/* ------------------------------------------------------------------ filling -- */

static void end_batch(struct batch *b, struct batch_reader *from, int ret)
{
	b->last = true;
	from->ret = ret;
}

/* Adds the item that @from holds.  Return: false if it belongs into the next batch. */
static bool add_held(struct batch *b, struct batch_reader *from)
{
	size_t need = keep_all(NULL, &from->held);

	if (b->items && (b->items == BATCH_ITEMS || need > b->cap - b->used))
		return false;
	/* Nothing is in the room yet, unless what is needed fits in, too. */
	if (!b->items && make_room(b, need)) {
		end_batch(b, from,
			  mp_fail(&from->err, MP_EXIT_RECORDING, -ENOMEM,
				  "cannot load the recording: %s", strerror(ENOMEM)));
		return false;
	}
	keep_all(b, &from->held);
	b->item[b->items++] = (struct batch_item){from->held, b->events};
	from->holds = false;
	return true;
}

static bool read_one(struct batch *b, struct batch_reader *from)
{
	int got = mpf_next(from->r, &from->held, &from->err);

	if (got <= 0) {
		end_batch(b, from, got);
		return false;
	}
	if (from->held.kind == MPF_EVENT)
		b->event[b->events++] = from->held.event;
	else
		from->holds = true;
	return true;
}

void batch_read(struct batch *b, struct batch_reader *from)
{
	b->events = b->items = b->tellings = 0;
	b->used = 0;
	b->last = false;
	while (b->events < BATCH_EVENTS) {
		if (from->holds && !add_held(b, from))
			break;
		b->events +=
		    mpf_next_events(from->r, b->event + b->events, BATCH_EVENTS - b->events);
		if (b->events < BATCH_EVENTS && !read_one(b, from))
			break;
	}
	b->share = mpf_read_share(from->r);
}

void batch_release(struct batch *b)
{
	free(b->room);
}
