/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/piece.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/privileges.h"
#include "record/internal.h"

/* ------------------------------------------------------------------ the end of a piece -- */

void piece_put_index(struct recorder *r, const struct recorder_ending *ending)
{
	const struct recorder_progress *before = &r->piece.before;
	struct mp_totals totals = {r->now.events - before->events + r->piece.head_events,
				   r->now.allocs - before->allocs,
				   r->now.allocated_bytes - before->allocated_bytes,
				   r->now.frees - before->frees,
				   r->now.live_bytes,
				   r->now.live_blocks};
	uint64_t pc[SS_MAX_FRAMES];

	mpf_begin_index(r->file);
	ending->modules(r->config.ctx, r->file);
	mpf_put_totals(r->file, &totals);
	for (uint32_t id = 0; id < r->stacks.n; id++) {
		const struct stack *s = &r->stacks.at[id];

		if (s->live_blocks <= 0)
			continue;
		stacks_pcs(&r->stacks, id, pc);
		if (id)
			mpf_put_stack(r->file, id, s->flags, pc, s->n);
		mpf_put_live(r->file, id, (uint64_t)s->live_bytes, (uint64_t)s->live_blocks);
	}
	mpf_end_index(r->file);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t *piece_addresses(const struct recorder *r, bool all, uint64_t *n)
{
	const struct stacks *s = &r->stacks;
	uint64_t *pc = malloc((s->naddresses + 1) * sizeof(*pc));
	bool *wanted = calloc(s->naddresses + 1, sizeof(*wanted));

	*n = 0;
	for (uint32_t id = 1; id < s->n && wanted; id++) {
		const struct stack *k = &s->at[id];

		if (all ? !k->piece : k->piece != r->piece.number + 1)
			continue;
		for (uint32_t i = 0; i < k->n; i++)
			wanted[s->frame[k->first + i]] = true;
	}
	for (uint32_t i = 1; i < s->naddresses && pc && wanted; i++) {
		if (wanted[i])
			pc[(*n)++] = s->address[i];
	}
	if (*n)
		qsort(pc, *n, sizeof(*pc), by_number);
	free(wanted);
	return pc;
}

static struct piece_end end_of_piece(struct recorder *r, uint64_t now_ns)
{
	struct piece_end e = {.file = r->file};

	release_culled(r, UINT64_MAX);
	each_second(r, now_ns);
	if (r->config.info.what == MP_ALLOCATIONS)
		piece_put_index(r, &r->config.rotation.ending);
	e.pc = piece_addresses(r, false, &e.n);
	e.losses = recorder_losses(r);
	e.finish = (struct mp_finish){.end_ns = r->last_ns,
				      .peak_live_bytes = r->peak_bytes,
				      .peak_live_blocks = r->peak_blocks,
				      .peak_time_ns = r->peak_time_ns,
				      .reason = MP_END_PIECED};
	return e;
}

static int finish(const struct recorder *r, struct piece_end *e)
{
	if (e->pc)
		r->config.rotation.ending.symbolize(r->config.ctx, e->file, e->pc, e->n);
	free(e->pc);
	mpf_put_losses(e->file, &e->losses);
	mpf_put_finish(e->file, &e->finish);
	return mpf_close(e->file);
}

/* ------------------------------------------------------------------ the thread -- */

static void work(struct recorder *r, enum piece_job job)
{
	struct piece *p = &r->piece;
	struct mp_err err = {0};
	int ret;

	if (job == PIECE_CREATE) {
		p->created = NULL;
		p->create_error = mpf_create(p->path, &p->info, &p->created, &err);
		return;
	}
	ret = finish(r, &p->end);
	if (ret && !p->error)
		p->error = ret;
}

static void *close_pieces(void *arg)
{
	struct recorder *r = arg;
	struct piece *p = &r->piece;
	enum piece_job job;

	privileges_keep(PRIVILEGES_FILES);
	do {
		pthread_mutex_lock(&p->lock);
		while (p->job == PIECE_NOTHING)
			pthread_cond_wait(&p->changed, &p->lock);
		job = p->job;
		pthread_mutex_unlock(&p->lock);
		if (job != PIECE_QUIT)
			work(r, job);
		pthread_mutex_lock(&p->lock);
		p->job = PIECE_NOTHING;
		pthread_cond_broadcast(&p->changed);
		pthread_mutex_unlock(&p->lock);
	} while (job != PIECE_QUIT);
	return NULL;
}

static void give(struct piece *p, enum piece_job job)
{
	pthread_mutex_lock(&p->lock);
	p->job = job;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

static void wait_until_done(struct piece *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->job != PIECE_NOTHING)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static bool is_busy(struct piece *p)
{
	bool busy;

	pthread_mutex_lock(&p->lock);
	busy = p->job != PIECE_NOTHING;
	pthread_mutex_unlock(&p->lock);
	return busy;
}

int piece_start(struct recorder *r)
{
	struct piece *p = &r->piece;

	p->next_bytes = r->config.rotation.bytes;
	if (!p->next_bytes)
		return 0;
	r->origins = origins_new();
	p->text[0] = strdup(r->config.info.executable);
	p->text[1] = strdup(r->config.info.cmdline);
	p->text[2] = strdup(r->config.info.memprof_version);
	if (!r->origins || !p->text[0] || !p->text[1] || !p->text[2])
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->has_thread = !pthread_create(&p->thread, NULL, close_pieces, r);
	return p->has_thread ? 0 : -EAGAIN;
}

int piece_stop(struct recorder *r)
{
	struct piece *p = &r->piece;

	if (!p->has_thread)
		return 0;
	wait_until_done(p);
	give(p, PIECE_QUIT);
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	p->has_thread = false;
	return p->error;
}

/* ------------------------------------------------------------------ the beginning of a piece -- */

static void put_carried(struct recorder *r, const struct live_block *b, const struct origin *from)
{
	struct mp_event ev = {.kind = EV_ALLOC,
			      .flags = from->flags | EV_F_CARRIED,
			      .time_ns = r->piece.base_ns,
			      .addr = b->addr,
			      .size = b->size,
			      .usable = b->size + from->slack,
			      .stack = stack_use(r, from->stack),
			      .tid = from->tid,
			      .hook = from->hook,
			      .fd = -1};

	r->piece.head_events++;
	r->now.error = mpf_put_event(r->file, &ev);
	aggregator_moves(r);
}

/* Writes the live blocks in order of address.  The differences are small, and the order of this
 * hash table would make a reader's table cluster. */
static int put_live(struct recorder *r)
{
	uint64_t *addr = malloc((live_count(r->live) + 1) * sizeof(*addr)), at = 0, n = 0;
	struct live_block b;

	if (!addr)
		return -ENOMEM;
	while (live_next(r->live, &at, &b))
		addr[n++] = b.addr;
	qsort(addr, n, sizeof(*addr), by_number);
	for (uint64_t i = 0; i < n; i++) {
		live_find(r->live, addr[i], &b);
		put_carried(r, &b, origins_at(r->origins, b.stack));
	}
	free(addr);
	return 0;
}

/* Writes the blocks that are inside a realloc, which are not in the live table. */
static void put_reallocs(struct recorder *r)
{
	for (uint32_t i = 0; i < r->nslots; i++) {
		const struct slot_state *st = &r->slot[i];
		struct mp_event ev = {.kind = EV_REALLOC_BEGIN,
				      .flags = EV_F_CARRIED,
				      .time_ns = r->piece.base_ns,
				      .tid = st->tid,
				      .fd = -1};

		if (!st->in_realloc)
			continue;
		if (st->realloc_known) {
			put_carried(r, &st->realloc_block, &st->realloc_origin);
			ev.addr = st->realloc_block.addr;
			ev.hook = st->realloc_origin.hook;
		}
		r->piece.head_events++;
		r->now.error = mpf_put_event(r->file, &ev);
	}
}

static void put_head(struct recorder *r)
{
	struct mp_losses l;

	r->hooks_written = 0;
	put_hooks_and_modules(r);
	r->config.rotation.ending.modules(r->config.ctx, r->file);
	if (put_live(r))
		r->now.error = -ENOMEM;
	put_reallocs(r);
	l = recorder_losses(r);
	mpf_put_losses(r->file, &l);
	r->now.error = mpf_flush(r->file);
	r->piece.head_bytes = mpf_bytes(r->file);
}

static bool create(struct recorder *r, uint64_t base_ns)
{
	struct piece *p = &r->piece;

	p->info = r->config.info;
	p->info.executable = p->text[0];
	p->info.cmdline = p->text[1];
	p->info.memprof_version = p->text[2];
	p->info.piece = p->number + 1;
	p->info.piece_ns = base_ns;
	p->info.start_unix_ns += base_ns;
	r->config.rotation.name(r->config.ctx, p->number + 1, p->path, sizeof(p->path));
	give(p, PIECE_CREATE);
	wait_until_done(p);
	if (p->created)
		return true;
	r->now.piece_error = p->create_error;
	p->next_bytes = mpf_bytes(r->file) + r->config.rotation.bytes;
	return false;
}

static void begin_piece(struct recorder *r, uint64_t base_ns, uint64_t now_ns)
{
	struct piece *p = &r->piece;

	progress_show(r, now_ns);
	p->before = r->now;
	p->bytes_before += mpf_bytes(r->file);
	p->base_ns = base_ns;
	p->head_events = 0;
	r->now.pieces = ++p->number;
	mp_losses_begin_piece(&r->losses);
	r->peak_bytes = r->now.live_bytes;
	r->peak_blocks = r->now.live_blocks;
	r->peak_time_ns = base_ns;
	r->file = p->created;
	mpf_set_base(r->file, base_ns);
	if (r->cull)
		cull_set_file(r->cull, r->file);
}

void piece_next(struct recorder *r, uint64_t now_ns)
{
	struct piece *p = &r->piece;
	uint64_t bytes = mpf_bytes(r->file), base_ns = r->last_ns;

	/* A piece is at least twice the size of its head, since the head can be larger than the
	 * wanted size. */
	if (!p->next_bytes || bytes < p->next_bytes || bytes < 2 * p->head_bytes || is_busy(p) ||
	    r->now.error || !create(r, base_ns))
		return;
	p->end = end_of_piece(r, now_ns);
	begin_piece(r, base_ns, now_ns);
	p->next_bytes = r->config.rotation.bytes;
	put_head(r);
	/* From now on a recorder that takes over the session finds all it needs in this piece. */
	r->config.rotation.begun(r->config.ctx, p->path);
	give(p, PIECE_CLOSE);
}
