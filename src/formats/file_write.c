/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "formats/chunk.h"
#include "formats/chunk_write.h"
#include "formats/event_write.h"
#include "formats/file.h"
#include "formats/put_queue.h"
#include "lib/cache_line.h"
#include "lib/create.h"

#define ITEM_ROOM  (64u << 10) /* maximum bytes of an item; strings are cut to fit */
#define STRING_MAX 8192u
#define RAW_MAX	   (CHUNK_TARGET + ITEM_ROOM)

_Static_assert(LENGTHS_MAX + COLUMN_ROOM <= RAW_MAX, "no part is larger than the items");
_Static_assert(EVENTS_MAX + RAW_MAX <= CHUNK_MAX, "a chunk of events can be too large");

struct mpf_writer {
	/* Until wait_encoded(), the queue's thread has all that follows, but for these three and for
	 * the error and the number of bytes in @out. */
	struct put_queue behind;
	bool drops; /* there is no file */
	uint64_t base;
	char apart_from_queue[CACHE_LINE];
	struct chunk_writer out;
	char apart_from_error[CACHE_LINE];
	uint8_t *raw; /* items */
	size_t n;
	struct event_writer events;
	struct chunk_state st;
	enum chunk_type type; /* of the current chunk */
};

static int error_of(const struct mpf_writer *w)
{
	return chunk_writer_error(&w->out);
}

static void put_bytes(struct mpf_writer *w, const void *p, size_t n)
{
	memcpy(w->raw + w->n, p, n);
	w->n += n;
}

static void put_u8(struct mpf_writer *w, uint8_t v)
{
	w->raw[w->n++] = v;
}

static inline uint8_t *delta(uint8_t *p, uint64_t v, uint64_t *last)
{
	uint64_t d = zigzag((int64_t)(v - *last));

	*last = v;
	return varint(p, d);
}

static void put_varint(struct mpf_writer *w, uint64_t v)
{
	w->n = (size_t)(varint(w->raw + w->n, v) - w->raw);
}

static void put_delta(struct mpf_writer *w, uint64_t v, uint64_t *last)
{
	w->n = (size_t)(delta(w->raw + w->n, v, last) - w->raw);
}

/* The length is stored + 1, so that NULL and "" differ. */
static void put_string(struct mpf_writer *w, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n > STRING_MAX)
		n = STRING_MAX;
	put_varint(w, s ? n + 1 : 0);
	if (s)
		put_bytes(w, s, n);
}

/* Return: @time_ns relative to the file's base; earlier times become 0. */
static uint64_t in_file(const struct mpf_writer *w, uint64_t time_ns)
{
	return time_ns > w->base ? time_ns - w->base : 0;
}

static void write_chunk(struct mpf_writer *w, enum chunk_type type)
{
	struct raw_chunk c = {.type = type, .parts = 1, .part = {{w->raw, w->n}}};

	if (type == CHUNK_ITEMS && w->events.any)
		events_chunk(&w->events, w->raw, w->n, &c);
	chunk_write(&w->out, &c);
	w->n = 0;
	memset(&w->st, 0, sizeof(w->st));
	events_begin_chunk(&w->events);
}

/* Waits until all that was put is encoded. */
static void wait_encoded(struct mpf_writer *w)
{
	put_queue_wait(&w->behind);
}

/* Writes the current chunk unless it is empty. */
static void end_chunk(struct mpf_writer *w)
{
	wait_encoded(w);
	if ((w->n || w->events.any) && !error_of(w))
		write_chunk(w, w->type);
}

/* Makes room for an item in the chunk.  To be called before every item. */
static void make_room(struct mpf_writer *w)
{
	if (w->n >= CHUNK_TARGET || events_full(&w->events))
		write_chunk(w, w->type);
}

/* Return: 0 if the item can be put. */
static int begin_item(struct mpf_writer *w, enum item kind)
{
	if (error_of(w) || w->drops)
		return error_of(w) ? error_of(w) : 1;
	make_room(w);
	events_put_item(&w->events);
	if (kind < ITEM_KINDS_IN_TAG) {
		put_u8(w, (uint8_t)(kind << 4));
	} else {
		put_u8(w, 0);
		put_u8(w, (uint8_t)kind);
	}
	return 0;
}

/* As begin_item(), after what was put before. */
static int item(struct mpf_writer *w, enum item kind)
{
	wait_encoded(w);
	return begin_item(w, kind);
}

static void put_info(struct mpf_writer *w, const struct mp_info *info)
{
	put_bytes(w, info->id, sizeof(info->id));
	put_varint(w, info->pid);
	put_varint(w, info->machine);
	put_varint(w, info->mode);
	put_varint(w, info->start_unix_ns);
	put_varint(w, info->process_start_unix_ns);
	put_string(w, info->executable);
	put_string(w, info->cmdline);
	put_string(w, info->memprof_version);
	put_varint(w, info->sample_interval);
	put_varint(w, info->what);
	put_varint(w, info->user_only);
	put_varint(w, info->page_size);
	put_varint(w, info->piece);
	put_varint(w, info->piece_ns);
	put_varint(w, info->processes);
	put_string(w, info->called[0] ? info->called : NULL);
	put_varint(w, info->cull_ns);
	put_varint(w, info->overhead_ppm);
	put_varint(w, info->keep);
	put_varint(w, info->live_only);
}

static struct mpf_writer *new_writer(void)
{
	struct mpf_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->out.fd = -1;
	w->type = CHUNK_ITEMS;
	w->raw = malloc(RAW_MAX);
	if (w->raw && !chunk_writer_init(&w->out, RAW_MAX, EVENTS_MAX + RAW_MAX) &&
	    !event_writer_init(&w->events))
		return w;
	mpf_close(w);
	return NULL;
}

/* Writes the head of the file.  Frees @w if it fails. */
static int start_file(struct mpf_writer *w, int fd, const char *name, const struct mp_info *info,
		      struct mp_err *err)
{
	int ret = chunk_writer_begin(&w->out, fd);

	if (!ret) {
		put_info(w, info);
		write_chunk(w, CHUNK_INFO);
		ret = error_of(w);
	}
	if (!ret)
		return 0;
	mpf_close(w);
	return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write %s: %s", name, strerror(-ret));
}

int mpf_create(const char *path, const struct mp_info *info, struct mpf_writer **out,
	       struct mp_err *err)
{
	struct mpf_writer *w = new_writer();
	int ret;

	if (!w)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	/* Not earlier: an existing file is replaced. */
	ret = create_file(path);
	if (ret < 0) {
		mpf_close(w);
		return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write %s: %s", path,
			       create_error(ret));
	}
	ret = start_file(w, ret, path, info, err);
	if (!ret)
		*out = w;
	return ret;
}

int mpf_create_in(int fd, const char *name, const struct mp_info *info, struct mpf_writer **out,
		  struct mp_err *err)
{
	struct mpf_writer *w = new_writer();
	int ret;

	if (!w) {
		close(fd);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	ret = start_file(w, fd, name, info, err);
	if (!ret)
		*out = w;
	return ret;
}

int mpf_create_nowhere(struct mpf_writer **out)
{
	struct mpf_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->out.fd = -1;
	w->drops = true;
	*out = w;
	return 0;
}

int mpf_put_hook(struct mpf_writer *w, const struct mp_hook_info *hook)
{
	if (!item(w, ITEM_OF_HOOK)) {
		put_string(w, hook->name);
		put_string(w, hook->module);
		put_u8(w, hook->kind);
	}
	return error_of(w);
}

int mpf_put_module(struct mpf_writer *w, const struct mp_module *m)
{
	if (!item(w, ITEM_OF_MODULE)) {
		put_varint(w, m->start);
		put_varint(w, m->end - m->start);
		put_varint(w, m->file_offset);
		put_varint(w, m->bias);
		put_varint(w, in_file(w, m->time_ns));
		put_string(w, m->path);
		put_u8(w, m->build_id_len);
		put_bytes(w, m->build_id, m->build_id_len);
	}
	return error_of(w);
}

int mpf_put_thread(struct mpf_writer *w, uint32_t tid, const char *name)
{
	if (!item(w, ITEM_OF_THREAD)) {
		put_varint(w, tid);
		put_string(w, name);
	}
	return error_of(w);
}

static void put_stack(void *arg, uint32_t id, uint32_t flags, const uint64_t *pc, uint32_t n)
{
	struct mpf_writer *w = arg;
	struct chunk_state *st = &w->st;
	uint32_t shared = 0;
	uint64_t last = 0;

	if (begin_item(w, ITEM_OF_STACK))
		return;
	put_varint(w, id);
	put_varint(w, flags);
	put_varint(w, n);
	/* The outermost frames are often the same as in the previous stack. */
	while (shared < n && shared < st->npc && pc[n - 1 - shared] == st->pc[st->npc - 1 - shared])
		shared++;
	put_varint(w, shared);
	/* Rotate SS_PC_EXACT from bit 63 to bit 0 */
	for (uint32_t i = 0; i < n - shared; i++)
		put_delta(w, pc[i] << 1 | pc[i] >> 63, &last);
	memcpy(st->pc, pc, n * sizeof(*pc));
	st->npc = n;
}

int mpf_put_stack(struct mpf_writer *w, uint32_t id, uint32_t flags, const uint64_t *pc, uint32_t n)
{
	if (n > sizeof(w->st.pc) / sizeof(w->st.pc[0]))
		return -E2BIG;
	if (w->behind.thread.started)
		put_queue_stack(&w->behind, id, flags, pc, n);
	else
		put_stack(w, id, flags, pc, n);
	return error_of(w);
}

/* Writes the fields of an event that creates a block or a range.  Return: the address after them.
 */
static uint8_t *put_block(uint8_t *p, uint8_t *tag, const struct mp_event *ev,
			  struct chunk_state *st)
{
	p = varint(p, ev->size);
	if (ev->usable != ev->size) {
		*tag |= ITEM_USABLE;
		p = varint(p, zigzag((int64_t)(ev->usable - ev->size)));
	}
	if (ev->kind == EV_REALLOC_END || ev->kind == EV_REMAP_END || ev->kind == EV_MAP)
		p = delta(p, ev->old_addr, &st->addr);
	if (ev->kind >= EV_MAP && ev->kind != EV_FAULT) {
		p = varint(p, zigzag(ev->fd));
		p = varint(p, ev->prot);
		p = varint(p, ev->mapflags);
	}
	p = varint(p, ev->stack);
	if (ev->weight)
		*p++ = ev->weight;
	return p;
}

/* Return: the kind of an event in the file. */
static uint8_t kind_of(const struct mp_event *ev)
{
	if (!ev->weight)
		return ev->kind;
	return ev->kind == EV_ALLOC ? CHUNK_WEIGHTED_ALLOC : CHUNK_WEIGHTED_REALLOC;
}

/* An event of a kind that is rare. */
static void put_event_item(struct mpf_writer *w, const struct mp_event *ev, uint64_t time_ns)
{
	struct chunk_state *st = &w->st;
	uint8_t *tag = w->raw + w->n, *p;

	events_put_item(&w->events);
	*tag = kind_of(ev);
	p = delta(tag + 1, time_ns, &st->time);
	if (ev->tid != st->tid) {
		*tag |= ITEM_TID;
		st->tid = ev->tid;
		p = varint(p, ev->tid);
	}
	if (ev->hook != st->hook[ev->kind]) {
		*tag |= ITEM_HOOK;
		st->hook[ev->kind] = ev->hook;
		p = varint(p, ev->hook);
	}
	if (ev->flags) {
		*tag |= ITEM_FLAGS;
		*p++ = ev->flags;
	}
	p = put_block(delta(p, ev->addr, &st->addr), tag, ev, st);
	w->n = (size_t)(p - w->raw);
}

static void put_event(void *arg, const struct mp_event *ev)
{
	struct mpf_writer *w = arg;
	uint64_t time_ns = in_file(w, ev->time_ns);

	if (error_of(w))
		return;
	make_room(w);
	if (!events_put(&w->events, &w->st, ev, time_ns))
		put_event_item(w, ev, time_ns);
}

/* Return: whether mpf_put_event() encodes the event, in the caller's thread. */
static bool encodes(const struct mpf_writer *w)
{
	return !w->drops && !w->behind.thread.started;
}

void mpf_prefetch(const struct mpf_writer *w, uint64_t addr)
{
	if (encodes(w))
		events_prefetch(&w->events, addr);
}

void mpf_prefetch_block(const struct mpf_writer *w, uint64_t addr)
{
	if (encodes(w))
		events_prefetch_block(&w->events, addr);
}

int mpf_put_event(struct mpf_writer *w, const struct mp_event *ev)
{
	if (w->drops)
		return 0;
	if (w->behind.thread.started)
		put_queue_event(&w->behind, ev);
	else
		put_event(w, ev);
	return error_of(w);
}

int mpf_write_behind(struct mpf_writer *w)
{
	static const struct put_ops ops = {put_event, put_stack};

	return w->drops ? 0 : put_queue_start(&w->behind, &ops, w);
}

int mpf_put_sample(struct mpf_writer *w, const struct mp_sample *s)
{
	if (!item(w, ITEM_OF_MEMORY)) {
		put_varint(w, in_file(w, s->time_ns));
		put_varint(w, s->rss);
		put_varint(w, s->anonymous);
		put_varint(w, s->file);
		put_varint(w, s->swap);
		put_varint(w, s->address_space);
		put_varint(w, s->session_rss);
		put_varint(w, s->session_anonymous);
		put_varint(w, s->session_address_space);
	}
	return error_of(w);
}

int mpf_put_map_usage(struct mpf_writer *w, const struct mp_map_usage *u)
{
	if (!item(w, ITEM_OF_MAP_USAGE)) {
		put_varint(w, in_file(w, u->time_ns));
		put_delta(w, u->start, &w->st.module);
		put_varint(w, u->end - u->start);
		put_varint(w, u->rss);
		put_varint(w, u->anonymous);
		put_varint(w, u->swap);
		put_varint(w, u->prot);
		put_string(w, u->path);
	}
	return error_of(w);
}

int mpf_put_losses(struct mpf_writer *w, const struct mp_losses *l)
{
	if (!item(w, ITEM_OF_LOSSES)) {
		/* All members are counters.  They are written in order, after their number, so that
		 * later versions can append members. */
		struct mp_losses in = *l;
		const uint64_t *v = (const uint64_t *)&in;
		size_t n = sizeof(in) / sizeof(*v);

		in.first_loss_ns = in_file(w, l->first_loss_ns);
		in.last_loss_ns = in_file(w, l->last_loss_ns);
		put_varint(w, n);
		for (size_t i = 0; i < n; i++)
			put_varint(w, v[i]);
	}
	return error_of(w);
}

int mpf_put_symbols(struct mpf_writer *w, uint64_t pc, const struct mp_symbol *sym, uint32_t n)
{
	if (!item(w, ITEM_OF_SYMBOLS)) {
		put_varint(w, pc << 1 | pc >> 63);
		put_varint(w, n);
		for (uint32_t i = 0; i < n; i++) {
			/* If several long names of inlined functions do not fit, those of the
			 * outermost frames are left out. */
			bool room = w->n + 4 * STRING_MAX < RAW_MAX;

			put_string(w, room ? sym[i].function : NULL);
			put_string(w, room ? sym[i].raw_function : NULL);
			put_string(w, room ? sym[i].source : NULL);
			put_varint(w, sym[i].line);
			put_varint(w, sym[i].column);
			put_u8(w, sym[i].is_inline);
		}
	}
	return error_of(w);
}

int mpf_put_finish(struct mpf_writer *w, const struct mp_finish *f)
{
	if (!item(w, ITEM_OF_FINISH)) {
		put_varint(w, in_file(w, f->end_ns));
		put_varint(w, f->peak_live_bytes);
		put_varint(w, f->peak_live_blocks);
		put_varint(w, in_file(w, f->peak_time_ns));
		put_varint(w, f->attach_stop_ns);
		put_varint(w, f->detach_stop_ns);
		put_u8(w, f->reason);
		put_u8(w, f->restored);
		put_u8(w, f->sideband);
	}
	return error_of(w);
}

/* Writes the numbers of blocks by lifetime: the first class that has any, the number of classes from
 * there to the last, then one number for each. */
static void put_lifetimes(struct mpf_writer *w, const uint32_t *n)
{
	uint32_t first = 0, end = LIFETIME_CLASSES;

	while (first < LIFETIME_CLASSES && !n[first])
		first++;
	while (end > first && !n[end - 1])
		end--;
	put_varint(w, first);
	put_varint(w, end - first);
	for (uint32_t i = first; i < end; i++)
		put_varint(w, n[i]);
}

/* Most members are those of the sum before: the writer sorts them. */
int mpf_put_culled(struct mpf_writer *w, const struct mp_culled *c)
{
	struct mp_culled *last = &w->st.culled;
	struct mp_culled in = *c;

	in.first_ns = in_file(w, c->first_ns);
	in.last_ns = in_file(w, c->last_ns);
	if (item(w, ITEM_OF_CULLED))
		return error_of(w);
	put_varint(w, zigzag((int64_t)in.stack - (int64_t)last->stack));
	put_varint(w, zigzag((int64_t)(in.size - last->size)));
	put_varint(w, zigzag((int64_t)in.tid - (int64_t)last->tid));
	put_varint(w, zigzag((int64_t)in.free_tid - (int64_t)in.tid));
	put_varint(w, zigzag((int64_t)in.hook - (int64_t)last->hook));
	put_varint(w, zigzag((int64_t)in.free_hook - (int64_t)last->free_hook));
	put_varint(w, zigzag((int64_t)in.process - (int64_t)last->process));
	put_u8(w, in.flags);
	put_u8(w, in.weight);
	put_varint(w, zigzag((int64_t)(in.first_ns - last->first_ns)));
	put_varint(w, in.last_ns - in.first_ns);
	put_varint(w, zigzag((int64_t)(in.usable - in.size * in.blocks)));
	put_lifetimes(w, in.lifetime);
	*last = in;
	return 0;
}

int mpf_put_section(struct mpf_writer *w, const struct mp_section *s)
{
	struct mp_section *last = &w->st.section;
	struct mp_section in = *s;

	in.end_ns = in_file(w, s->end_ns);
	if (item(w, ITEM_OF_SECTION))
		return error_of(w);
	put_varint(w, zigzag((int64_t)(in.end_ns - last->end_ns)));
	put_varint(w, zigzag((int64_t)(in.live_bytes - last->live_bytes)));
	put_varint(w, zigzag((int64_t)(in.live_blocks - last->live_blocks)));
	put_varint(w, zigzag((int64_t)(in.peak_bytes - in.live_bytes)));
	put_varint(w, zigzag((int64_t)(in.peak_blocks - in.live_blocks)));
	put_varint(w, in.allocations);
	put_varint(w, in.allocated_bytes);
	put_varint(w, in.frees);
	put_varint(w, in.freed_bytes);
	*last = in;
	return 0;
}

int mpf_put_stack_peak(struct mpf_writer *w, const struct mp_stack_peak *p)
{
	if (!item(w, ITEM_OF_STACK_PEAK)) {
		put_varint(w, p->stack);
		put_varint(w, p->most_bytes);
		put_varint(w, in_file(w, p->most_ns));
		put_varint(w, p->peak_bytes);
		put_varint(w, p->peak_blocks);
	}
	return error_of(w);
}

int mpf_put_mark(struct mpf_writer *w, uint64_t time_ns, const char *name)
{
	if (!item(w, ITEM_OF_MARK)) {
		put_varint(w, in_file(w, time_ns));
		put_string(w, name);
	}
	return error_of(w);
}

int mpf_put_process(struct mpf_writer *w, const struct mp_process *p)
{
	if (!item(w, ITEM_OF_PROCESS)) {
		put_varint(w, p->number);
		put_varint(w, p->pid);
		put_varint(w, p->start_ns);
		put_varint(w, p->end_ns - p->start_ns);
		put_string(w, p->executable);
		put_string(w, p->cmdline);
	}
	return error_of(w);
}

int mpf_put_binary(struct mpf_writer *w, const struct mp_binary *b)
{
	if (b->n > MPF_BINARY_PIECE)
		return -E2BIG;
	end_chunk(w);
	if (error_of(w) || w->drops)
		return error_of(w);
	put_string(w, b->path);
	put_u8(w, b->build_id_len);
	put_bytes(w, b->build_id, b->build_id_len);
	put_varint(w, b->size);
	put_varint(w, b->offset);
	put_bytes(w, b->data, b->n);
	write_chunk(w, CHUNK_BINARY);
	return error_of(w);
}

void mpf_set_base(struct mpf_writer *w, uint64_t base_ns)
{
	w->base = base_ns;
}

int mpf_begin_index(struct mpf_writer *w)
{
	end_chunk(w);
	w->type = CHUNK_INDEX;
	return error_of(w);
}

int mpf_put_totals(struct mpf_writer *w, const struct mp_totals *t)
{
	if (!item(w, ITEM_OF_TOTALS)) {
		put_varint(w, t->events);
		put_varint(w, t->allocations);
		put_varint(w, t->allocated_bytes);
		put_varint(w, t->frees);
		put_varint(w, t->live_bytes);
		put_varint(w, t->live_blocks);
	}
	return error_of(w);
}

int mpf_put_live(struct mpf_writer *w, uint32_t id, uint64_t bytes, uint64_t blocks)
{
	if (!item(w, ITEM_OF_LIVE)) {
		put_varint(w, id);
		put_varint(w, bytes);
		put_varint(w, blocks);
	}
	return error_of(w);
}

int mpf_put_activity(struct mpf_writer *w, const struct mp_activity *a, bool thread)
{
	uint64_t bits;

	if (item(w, thread ? ITEM_OF_THREAD_ACTIVITY : ITEM_OF_ACTIVITY))
		return error_of(w);
	put_varint(w, a->id);
	put_varint(w, a->allocations);
	put_varint(w, a->allocated_bytes);
	put_varint(w, a->temporary);
	put_varint(w, a->temporary_bytes);
	memcpy(&bits, &a->live_variance, sizeof(bits));
	/* The bytes of a number that is not 0 are all in use; those of 0 take one. */
	put_varint(w, bits);
	return error_of(w);
}

int mpf_end_index(struct mpf_writer *w)
{
	end_chunk(w);
	w->type = CHUNK_ITEMS;
	return error_of(w);
}

int mpf_flush(struct mpf_writer *w)
{
	end_chunk(w);
	return error_of(w);
}

uint64_t mpf_bytes(const struct mpf_writer *w)
{
	return chunk_writer_bytes(&w->out);
}

static int finish_file(struct mpf_writer *w, bool whole)
{
	int ret;

	put_queue_stop(&w->behind);
	if (w->out.fd >= 0) {
		end_chunk(w);
		if (whole && !error_of(w))
			write_chunk(w, CHUNK_END);
	}
	ret = chunk_writer_end(&w->out);
	event_writer_free(&w->events);
	free(w->raw);
	free(w);
	return ret;
}

int mpf_descriptor(const struct mpf_writer *w)
{
	return w->out.fd;
}

int mpf_close(struct mpf_writer *w)
{
	return finish_file(w, true);
}

int mpf_close_open_ended(struct mpf_writer *w)
{
	return finish_file(w, false);
}
