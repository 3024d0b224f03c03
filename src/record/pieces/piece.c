/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/piece.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/by_number.h"
#include "record/aggregator.h"
#include "record/counters.h"
#include "record/losses.h"
#include "record/pieces/periodic.h"
#include "record/stacks/stack_ids.h"

/* ------------------------------------------------------------------ the end of a piece -- */

void piece_put_index(struct aggregator *a, const struct recorder_ending *ending)
{
	const struct recorder_progress *before = &a->piece.before;
	struct mp_totals totals = {a->now.events - before->events + a->piece.head_events,
				   a->now.allocs - before->allocs,
				   a->now.allocated_bytes - before->allocated_bytes,
				   a->now.frees - before->frees,
				   a->levels.section.live_bytes,
				   a->levels.section.live_blocks};

	mpf_begin_index(a->file);
	ending->modules(a->config->ctx, a->file);
	mpf_put_totals(a->file, &totals);
	for (uint32_t id = 0; id < a->stacks.n; id++) {
		struct stack_level live = levels_of(&a->levels, id);

		if (!live.live_blocks)
			continue;
		if (id)
			stack_put(a, id, a->file);
		mpf_put_live(a->file, id, live.live_bytes, live.live_blocks);
	}
	mpf_end_index(a->file);
}

uint64_t *piece_addresses(const struct aggregator *a, bool all, uint64_t *n)
{
	return stacks_addresses(&a->stacks, 1, all ? 0 : a->piece.number + 1, n);
}

static struct piece_end end_of_piece(struct aggregator *a, uint64_t now_ns)
{
	struct piece_end e = {.file = a->file};

	end_culling(a, a->last_ns);
	each_second(a, now_ns);
	if (a->config->info.what == MP_ALLOCATIONS)
		piece_put_index(a, &a->config->rotation.ending);
	e.pc = piece_addresses(a, false, &e.n);
	e.losses = losses_now(a);
	e.finish = (struct mp_finish){.end_ns = a->last_ns,
				      .peak_live_bytes = a->levels.peak.bytes,
				      .peak_live_blocks = a->levels.peak.blocks,
				      .peak_time_ns = a->levels.peak.time_ns,
				      .reason = MP_END_PIECED};
	return e;
}

/* ------------------------------------------------------------------ the beginning of a piece -- */

int piece_start(struct aggregator *a)
{
	struct piece *p = &a->piece;

	p->next_bytes = a->config->rotation.bytes;
	if (!p->next_bytes && !a->config->live_only)
		return 0;
	a->origins = origins_new();
	return a->origins ? piece_thread_start(&p->closer, a->config) : -ENOMEM;
}

/* Return: the time of the event of a carried block.  A piece has no times from before its beginning. */
static uint64_t time_of(const struct aggregator *a, const struct origin *from)
{
	return a->config->live_only ? from->time_ns : a->piece.base_ns;
}

static void put_carried(struct aggregator *a, const struct live_block *b, const struct origin *from)
{
	struct mp_event ev = {.kind = EV_ALLOC,
			      .flags = from->flags | EV_F_CARRIED,
			      .time_ns = time_of(a, from),
			      .addr = b->addr,
			      .size = b->size,
			      .usable = b->size + from->slack,
			      .stack = stack_use(a, from->stack),
			      .tid = from->tid,
			      .hook = from->hook,
			      .weight = b->weight,
			      .fd = -1};

	a->piece.head_events++;
	a->now.error = mpf_put_event(a->file, &ev);
	aggregator_moves(a);
}

struct place {
	uint64_t time_ns, addr;
};

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->time_ns != y->time_ns ? by_number(&x->time_ns, &y->time_ns)
					: by_number(&x->addr, &y->addr);
}

/* Writes the live blocks in order of time, then address.  The differences are small, and the order of
 * this hash table would make a reader's table cluster.  Without memory for sorting they are written
 * in the table's order, which is only slower to read. */
static void put_live(struct aggregator *a)
{
	struct place *place = malloc((live_count(a->live) + 1) * sizeof(*place));
	uint64_t at = 0, n = 0;
	struct live_block b;

	while (live_next(a->live, &at, &b)) {
		const struct origin *from = origins_at(a->origins, b.stack);

		if (place)
			place[n++] = (struct place){time_of(a, from), b.addr};
		else
			put_carried(a, &b, from);
	}
	if (place)
		qsort(place, n, sizeof(*place), by_time);
	for (uint64_t i = 0; i < n; i++) {
		live_find(a->live, place[i].addr, &b);
		put_carried(a, &b, origins_at(a->origins, b.stack));
	}
	free(place);
}

/* Writes the blocks that are inside a realloc, which are not in the live table. */
static void put_reallocs(struct aggregator *a)
{
	for (uint32_t i = 0; i < a->layout->nslots; i++) {
		const struct slot_state *st = &a->slot[i];
		struct mp_event ev = {.kind = EV_REALLOC_BEGIN,
				      .flags = EV_F_CARRIED,
				      .time_ns = a->piece.base_ns,
				      .tid = st->tid,
				      .fd = -1};

		if (!st->in_realloc)
			continue;
		if (st->realloc_known) {
			put_carried(a, &st->realloc_block, &st->realloc_origin);
			ev.time_ns = time_of(a, &st->realloc_origin);
			ev.addr = st->realloc_block.addr;
			ev.hook = st->realloc_origin.hook;
		}
		a->piece.head_events++;
		a->now.error = mpf_put_event(a->file, &ev);
	}
}

void piece_put_head(struct aggregator *a)
{
	struct mp_losses l;

	a->piece.head_events = 0;
	a->hooks_written = 0;
	put_hooks_and_modules(a);
	a->config->rotation.ending.modules(a->config->ctx, a->file);
	/* The address of a block inside a realloc can already be that of another thread's block,
	 * which must come later: a reader has one live block at an address. */
	put_reallocs(a);
	put_live(a);
	l = losses_now(a);
	mpf_put_losses(a->file, &l);
	a->now.error = mpf_flush(a->file);
	a->piece.head_bytes = mpf_bytes(a->file);
}

static bool create(struct aggregator *a, uint64_t base_ns)
{
	struct piece *p = &a->piece;
	struct piece_thread *t = &p->closer;

	t->info = a->config->info;
	t->info.piece = p->number + 1;
	t->info.piece_ns = base_ns;
	t->info.start_unix_ns += base_ns;
	a->config->rotation.name(a->config->ctx, p->number + 1, t->path, sizeof(t->path));
	piece_thread_give(t, PIECE_CREATE);
	piece_thread_wait(t);
	if (t->created)
		return true;
	a->now.piece_error = t->create_error;
	p->next_bytes = mpf_bytes(a->file) + a->config->rotation.bytes;
	return false;
}

void piece_take_file(struct aggregator *a, struct mpf_writer *file)
{
	a->file = file;
	if (a->config->jobs >= JOBS_WRITING)
		(void)mpf_write_behind(file);
}

static void begin_piece(struct aggregator *a, uint64_t base_ns, uint64_t now_ns)
{
	struct piece *p = &a->piece;

	counters_show(a, now_ns);
	p->before = a->now;
	p->bytes_before += mpf_bytes(a->file);
	p->base_ns = base_ns;
	a->now.pieces = ++p->number;
	a->now.pieces_deleted = p->closer.kept.deleted;
	a->now.delete_error = p->closer.kept.error;
	mp_losses_begin_piece(&a->losses);
	piece_take_file(a, p->closer.created);
	mpf_set_base(a->file, base_ns);
	levels_begin(&a->levels, base_ns);
	if (a->cull)
		cull_set_file(a->cull, a->file);
}

/* Return: whether the current piece is large enough and the next one can begin. */
static bool is_due(struct aggregator *a)
{
	struct piece *p = &a->piece;
	uint64_t bytes = mpf_bytes(a->file);
	/* The head can be larger than the wanted size. */
	uint64_t least = p->next_bytes > 2 * p->head_bytes ? p->next_bytes : 2 * p->head_bytes;

	if (!p->next_bytes || bytes < least || a->now.error)
		return false;
	if (!piece_thread_is_busy(&p->closer))
		return true;
	/* A piece grows while the one before is completed.  Where the disk space is limited, the
	 * events wait in the queue instead. */
	if (!a->config->info.keep || bytes < 2 * least)
		return false;
	piece_thread_wait(&p->closer);
	return true;
}

void piece_next(struct aggregator *a, uint64_t now_ns)
{
	struct piece *p = &a->piece;
	uint64_t base_ns = a->last_ns;

	if (!is_due(a) || !create(a, base_ns))
		return;
	p->closer.end = end_of_piece(a, now_ns);
	begin_piece(a, base_ns, now_ns);
	p->next_bytes = a->config->rotation.bytes;
	piece_put_head(a);
	/* From now on a recorder that takes over the session finds all it needs in this piece. */
	a->config->rotation.begun(a->config->ctx, p->closer.path);
	piece_thread_give(&p->closer, PIECE_CLOSE);
}
