/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formats/chunk_read.h"
#include "formats/event_read.h"
#include "formats/file.h"
#include "formats/record.h"
#include "formats/session.h"
#include "lib/live.h"

#define MAX_SYMBOLS 256

struct mpf_reader {
	struct chunk_file file;
	bool ended, indexed, sampled;
	uint32_t processes;
	char truncated[160];
	char *strings; /* text of the current item */
	size_t nstrings, cap_strings;
	struct chunk_state st;
	struct event_reader events;
	uint64_t pc[SS_MAX_FRAMES];
	struct mp_symbol symbols[MAX_SYMBOLS];
	char *info_strings[3];
};

static uint8_t get_u8(struct mpf_reader *r)
{
	return chunk_u8(&r->file);
}

static uint64_t get(struct mpf_reader *r)
{
	return chunk_varint(&r->file);
}

static uint64_t get_delta(struct mpf_reader *r, uint64_t *last)
{
	return *last += (uint64_t)unzigzag(get(r));
}

/* The strings of an item are never longer than its chunk. */
static const char *get_string(struct mpf_reader *r)
{
	uint64_t n = get(r);
	char *s;

	if (!n)
		return NULL;
	n--;
	if (n > r->file.n - r->file.at || r->nstrings + n + 1 > r->cap_strings) {
		r->file.bad = true;
		return NULL;
	}
	s = r->strings + r->nstrings;
	memcpy(s, r->file.raw + r->file.at, n);
	s[n] = 0;
	r->file.at += n;
	r->nstrings += n + 1;
	return s;
}

static void cut(struct mpf_reader *r, const char *why)
{
	r->ended = true;
	events_end_chunk(&r->events);
	snprintf(r->truncated, sizeof(r->truncated),
		 "the recording ends at byte %llu (%s); everything before it is used",
		 (unsigned long long)r->file.offset, why);
}

/* Makes room for the strings of an item: twice the chunk's capacity, which always suffices. */
static bool room_for_strings(struct mpf_reader *r)
{
	size_t want = 2 * r->file.cap + 4096;
	char *more = want > r->cap_strings ? realloc(r->strings, want) : r->strings;

	if (!more)
		return false;
	r->strings = more;
	r->cap_strings = want;
	return true;
}

/* Reads the next chunk that is not of a binary.  Return: its type, with the payload in r->file, or
 * 0 if there is none or it is truncated or damaged. */
static int next_chunk(struct mpf_reader *r)
{
	struct chunk_file *f = &r->file;
	struct chunk_header h = {0};
	const char *why;

	while (!(why = chunk_header(f, f->offset, &h)) && h.type == CHUNK_BINARY &&
	       !(why = chunk_pass(f, &h)))
		;
	if (!why)
		why = chunk_payload(f, &h);
	if (!why && !room_for_strings(r))
		why = "out of memory";
	if (!why && h.type == CHUNK_EVENTS)
		why = events_open(&r->events, f);
	if (why)
		return cut(r, why), 0;
	memset(&r->st, 0, sizeof(r->st));
	return (int)h.type;
}

static char *copy_string(const char *s)
{
	return strdup(s ? s : "");
}

static void get_info(struct mpf_reader *r, struct mp_info *info)
{
	memset(info, 0, sizeof(*info));
	chunk_bytes(&r->file, info->id, sizeof(info->id));
	info->pid = (uint32_t)get(r);
	info->machine = (uint16_t)get(r);
	info->mode = (uint8_t)get(r);
	info->start_unix_ns = get(r);
	info->process_start_unix_ns = get(r);
	for (int i = 0; i < 3; i++)
		r->info_strings[i] = copy_string(get_string(r));
	info->executable = r->info_strings[0];
	info->cmdline = r->info_strings[1];
	info->memprof_version = r->info_strings[2];
	info->sample_interval = r->file.at < r->file.n ? get(r) : 0;
	info->what = r->file.at < r->file.n ? (uint8_t)get(r) : MP_ALLOCATIONS;
	info->user_only = r->file.at < r->file.n ? (uint8_t)get(r) : 0;
	info->page_size = r->file.at < r->file.n ? (uint32_t)get(r) : 0;
	info->piece = r->file.at < r->file.n ? (uint32_t)get(r) : 0;
	info->piece_ns = r->file.at < r->file.n ? get(r) : 0;
	info->processes = r->file.at < r->file.n ? (uint32_t)get(r) : 0;
	if (r->file.at < r->file.n) {
		const char *called = get_string(r);

		if (called && strlen(called) < sizeof(info->called) && !strchr(called, '/'))
			strcpy(info->called, called);
	}
	info->cull_ns = r->file.at < r->file.n ? get(r) : 0;
	info->overhead_ppm = r->file.at < r->file.n ? (uint32_t)get(r) : 0;
	info->keep = r->file.at < r->file.n ? (uint32_t)get(r) : 0;
	info->live_only = r->file.at < r->file.n ? get(r) != 0 : 0;
	r->processes = info->processes ? info->processes : 1;
	r->sampled = info->sample_interval != 0;
}

int mpf_open(const char *path, struct mpf_reader **out, struct mp_info *info, struct mp_err *err)
{
	struct mpf_reader *r = calloc(1, sizeof(*r));
	int type, ret;

	if (!r)
		return -ENOMEM;
	ret = chunk_file_open(&r->file, path, err);
	if (ret) {
		mpf_reader_free(r);
		return ret;
	}
	type = next_chunk(r);
	if (type == CHUNK_INFO)
		get_info(r, info);
	if (type != CHUNK_INFO || r->file.bad) {
		mpf_reader_free(r);
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s is a memprof recording that was cut off before its first event",
			       path);
	}
	r->file.n = r->file.at = 0;
	*out = r;
	return 0;
}

/* Return: the event kind of a file's kind with a weight; an invalid one if there is none. */
static uint8_t unweighted(uint8_t kind)
{
	if (kind == CHUNK_WEIGHTED_ALLOC)
		return EV_ALLOC;
	return kind == CHUNK_WEIGHTED_REALLOC ? EV_REALLOC_END : EVENT_KINDS - 1;
}

static void get_event(struct mpf_reader *r, uint8_t tag, struct mp_event *ev)
{
	struct chunk_state *st = &r->st;

	bool weighted = (tag & 0x0f) >= CHUNK_WEIGHTED_ALLOC;

	memset(ev, 0, sizeof(*ev));
	ev->kind = weighted ? unweighted(tag & 0x0f) : tag & 0x0f;
	ev->fd = -1;
	ev->time_ns = get_delta(r, &st->time);
	if (tag & ITEM_TID)
		st->tid = (uint32_t)get(r);
	if (tag & ITEM_HOOK)
		st->hook[ev->kind] = (uint16_t)get(r);
	if (tag & ITEM_FLAGS)
		ev->flags = get_u8(r);
	ev->tid = st->tid;
	ev->hook = st->hook[ev->kind];
	ev->addr = get_delta(r, &st->addr);
	if (ev->kind > EV_FAULT)
		r->file.bad = true;
	if (ev->kind == EV_FREE && ev->flags & EV_F_STACK)
		ev->stack = (uint32_t)get(r);
	if (ev->kind == EV_FREE || ev->kind == EV_REALLOC_BEGIN)
		return;
	ev->size = ev->usable = get(r);
	if (tag & ITEM_USABLE)
		ev->usable = ev->size + (uint64_t)unzigzag(get(r));
	if (ev->kind == EV_REALLOC_END || ev->kind == EV_REMAP_END || ev->kind == EV_MAP)
		ev->old_addr = get_delta(r, &st->addr);
	if (ev->kind >= EV_MAP && ev->kind != EV_FAULT) {
		ev->fd = (int32_t)unzigzag(get(r));
		ev->prot = (uint32_t)get(r);
		ev->mapflags = (uint32_t)get(r);
	}
	ev->stack = (uint32_t)get(r);
	if (weighted)
		ev->weight = get_u8(r);
	/* Only small blocks have a weight, at least 2. */
	if (weighted &&
	    (!ev->weight || ev->weight > CHUNK_WEIGHT_MAX || ev->size >= MPR_WEIGHT_MAX_SIZE))
		r->file.bad = true;
}

static void get_stack(struct mpf_reader *r, struct mpf_item *item)
{
	struct chunk_state *st = &r->st;
	uint64_t last = 0, n, shared;

	item->stack.id = (uint32_t)get(r);
	item->stack.flags = (uint32_t)get(r);
	n = get(r);
	shared = get(r);
	if (n > SS_MAX_FRAMES || shared > n || shared > st->npc) {
		r->file.bad = true;
		return;
	}
	for (uint64_t i = 0; i < n - shared; i++) {
		uint64_t v = get_delta(r, &last);

		r->pc[i] = v >> 1 | v << 63;
	}
	memcpy(r->pc + (n - shared), st->pc + (st->npc - shared), shared * sizeof(uint64_t));
	memcpy(st->pc, r->pc, n * sizeof(uint64_t));
	st->npc = (uint32_t)n;
	item->stack.n = (uint32_t)n;
	item->stack.pc = r->pc;
}

static void get_symbols(struct mpf_reader *r, struct mpf_item *item)
{
	uint64_t pc = get(r), n = get(r);

	if (n > MAX_SYMBOLS) {
		r->file.bad = true;
		return;
	}
	item->symbols.pc = pc >> 1 | pc << 63;
	item->symbols.n = (uint32_t)n;
	item->symbols.at = r->symbols;
	for (uint64_t i = 0; i < n; i++) {
		struct mp_symbol *s = &r->symbols[i];

		s->function = get_string(r);
		s->raw_function = get_string(r);
		s->source = get_string(r);
		s->line = (uint32_t)get(r);
		s->column = (uint32_t)get(r);
		s->is_inline = get_u8(r);
	}
}

/* Adds a signed difference to *@last.  Return: the sum. */
static uint32_t get_delta32(struct mpf_reader *r, uint32_t last)
{
	return last + (uint32_t)unzigzag(get(r));
}

/* Return: the number of all blocks. */
static uint64_t get_lifetimes(struct mpf_reader *r, uint32_t *n)
{
	uint64_t first = get(r), classes = get(r), sum = 0;

	if (first > LIFETIME_CLASSES || classes > LIFETIME_CLASSES - first) {
		r->file.bad = true;
		return 0;
	}
	for (uint64_t i = first; i < first + classes; i++) {
		uint64_t v = get(r);

		if (v > UINT32_MAX)
			r->file.bad = true;
		n[i] = (uint32_t)v;
		sum += v;
	}
	return sum;
}

static void get_culled(struct mpf_reader *r, struct mp_culled *c)
{
	struct mp_culled *last = &r->st.culled;
	int64_t slack;

	memset(c, 0, sizeof(*c));
	c->stack = get_delta32(r, last->stack);
	c->size = last->size + (uint64_t)unzigzag(get(r));
	c->tid = get_delta32(r, last->tid);
	c->free_tid = get_delta32(r, c->tid);
	c->hook = (uint16_t)get_delta32(r, last->hook);
	c->free_hook = (uint16_t)get_delta32(r, last->free_hook);
	c->process = (uint16_t)get_delta32(r, last->process);
	c->flags = get_u8(r);
	c->weight = get_u8(r);
	c->first_ns = last->first_ns + (uint64_t)unzigzag(get(r));
	c->last_ns = c->first_ns + get(r);
	slack = unzigzag(get(r));
	c->blocks = get_lifetimes(r, c->lifetime);
	c->usable = c->size * c->blocks + (uint64_t)slack;
	/* No allocator returns such blocks, and thinning records large blocks one by one. */
	if (!c->blocks || c->size > LIVE_MAX_SIZE || c->flags & ~MP_CULLED_FLAGS ||
	    c->weight > CHUNK_WEIGHT_MAX || (c->weight && c->size >= MPR_WEIGHT_MAX_SIZE) ||
	    c->last_ns < c->first_ns)
		r->file.bad = true;
	*last = *c;
}

static void get_section(struct mpf_reader *r, struct mp_section *s)
{
	struct mp_section *last = &r->st.section;

	s->end_ns = last->end_ns + (uint64_t)unzigzag(get(r));
	s->live_bytes = last->live_bytes + (uint64_t)unzigzag(get(r));
	s->live_blocks = last->live_blocks + (uint64_t)unzigzag(get(r));
	s->peak_bytes = s->live_bytes + (uint64_t)unzigzag(get(r));
	s->peak_blocks = s->live_blocks + (uint64_t)unzigzag(get(r));
	s->allocations = get(r);
	s->allocated_bytes = get(r);
	s->frees = get(r);
	s->freed_bytes = get(r);
	*last = *s;
}

static void get_map_usage(struct mpf_reader *r, struct mp_map_usage *u)
{
	u->time_ns = get(r);
	u->start = get_delta(r, &r->st.module);
	u->end = u->start + get(r);
	u->rss = get(r);
	u->anonymous = get(r);
	u->swap = get(r);
	u->prot = (uint32_t)get(r);
	u->path = get_string(r);
}

static void get_process(struct mpf_reader *r, struct mp_process *p)
{
	p->number = (uint32_t)get(r);
	p->pid = (uint32_t)get(r);
	p->start_ns = get(r);
	p->end_ns = p->start_ns + get(r);
	p->executable = get_string(r);
	p->cmdline = get_string(r);
}

/* @apart: the item has the numbers of memprof's session apart from the process's. */
static void get_sample(struct mpf_reader *r, bool apart, struct mp_sample *s)
{
	*s = (struct mp_sample){.time_ns = get(r)};
	s->rss = get(r);
	s->anonymous = get(r);
	s->file = get(r);
	s->swap = get(r);
	s->address_space = get(r);
	if (!apart)
		return;
	s->session_rss = get(r);
	s->session_anonymous = get(r);
	s->session_address_space = get(r);
}

/* An item whose kind is in the byte after the tag. */
static void get_activity(struct mpf_reader *r, struct mp_activity *a)
{
	uint64_t bits;

	a->id = (uint32_t)get(r);
	a->allocations = get(r);
	a->allocated_bytes = get(r);
	a->temporary = get(r);
	a->temporary_bytes = get(r);
	bits = get(r);
	memcpy(&a->live_variance, &bits, sizeof(bits));
	if (!isfinite(a->live_variance) || a->live_variance < 0)
		r->file.bad = true;
}

static void get_further_item(struct mpf_reader *r, struct mpf_item *item)
{
	uint8_t kind = get_u8(r);

	switch (kind) {
	case ITEM_OF_CULLED:
		item->kind = MPF_CULLED;
		get_culled(r, &item->culled);
		return;
	case ITEM_OF_SECTION:
		item->kind = MPF_SECTION;
		get_section(r, &item->section);
		return;
	case ITEM_OF_STACK_PEAK:
		item->kind = MPF_STACK_PEAK;
		item->stack_peak.stack = (uint32_t)get(r);
		item->stack_peak.most_bytes = get(r);
		item->stack_peak.most_ns = get(r);
		item->stack_peak.peak_bytes = get(r);
		item->stack_peak.peak_blocks = get(r);
		return;
	case ITEM_OF_ACTIVITY:
	case ITEM_OF_THREAD_ACTIVITY:
		item->kind = kind == ITEM_OF_ACTIVITY ? MPF_ACTIVITY : MPF_THREAD_ACTIVITY;
		get_activity(r, &item->activity);
		return;
	}
	r->file.bad = true;
}

static void get_item(struct mpf_reader *r, uint8_t tag, struct mpf_item *item)
{
	struct mp_module *m = &item->module;
	struct mp_losses *l = &item->losses;
	uint64_t n;

	switch (tag >> 4) {
	case ITEM_OF_HOOK:
		item->kind = MPF_HOOK;
		item->hook.name = get_string(r);
		item->hook.module = get_string(r);
		item->hook.kind = get_u8(r);
		return;
	case ITEM_OF_MODULE:
		item->kind = MPF_MODULE;
		memset(m, 0, sizeof(*m));
		m->start = get(r);
		m->end = m->start + get(r);
		m->file_offset = get(r);
		m->bias = get(r);
		m->time_ns = get(r);
		m->path = get_string(r);
		m->build_id_len = get_u8(r);
		if (m->build_id_len > sizeof(m->build_id))
			r->file.bad = true;
		else
			chunk_bytes(&r->file, m->build_id, m->build_id_len);
		return;
	case ITEM_OF_THREAD:
		item->kind = MPF_THREAD;
		item->thread.tid = (uint32_t)get(r);
		item->thread.name = get_string(r);
		return;
	case ITEM_OF_STACK:
		item->kind = MPF_STACK;
		get_stack(r, item);
		return;
	case ITEM_OF_SAMPLE:
	case ITEM_OF_MEMORY:
		item->kind = MPF_SAMPLE;
		get_sample(r, tag >> 4 == ITEM_OF_MEMORY, &item->sample);
		return;
	case ITEM_OF_LOSSES:
		item->kind = MPF_LOSSES;
		memset(l, 0, sizeof(*l));
		n = get(r);
		for (uint64_t i = 0; i < n && !r->file.bad; i++) {
			uint64_t v = get(r);

			if (i < sizeof(*l) / sizeof(uint64_t))
				((uint64_t *)l)[i] = v;
		}
		return;
	case ITEM_OF_SYMBOLS:
		item->kind = MPF_SYMBOLS;
		get_symbols(r, item);
		return;
	case ITEM_OF_FINISH:
		item->kind = MPF_FINISH;
		memset(&item->finish, 0, sizeof(item->finish));
		item->finish.end_ns = get(r);
		item->finish.peak_live_bytes = get(r);
		item->finish.peak_live_blocks = get(r);
		item->finish.peak_time_ns = get(r);
		item->finish.attach_stop_ns = get(r);
		item->finish.detach_stop_ns = get(r);
		item->finish.reason = get_u8(r);
		item->finish.restored = get_u8(r);
		item->finish.sideband = get_u8(r);
		return;
	case ITEM_OF_MAP_USAGE:
		item->kind = MPF_MAP_USAGE;
		get_map_usage(r, &item->map_usage);
		return;
	case ITEM_OF_TOTALS:
		item->kind = MPF_TOTALS;
		item->totals.events = get(r);
		item->totals.allocations = get(r);
		item->totals.allocated_bytes = get(r);
		item->totals.frees = get(r);
		item->totals.live_bytes = get(r);
		item->totals.live_blocks = get(r);
		return;
	case ITEM_OF_LIVE:
		item->kind = MPF_LIVE;
		item->live.id = (uint32_t)get(r);
		item->live.bytes = get(r);
		item->live.blocks = get(r);
		return;
	case ITEM_OF_PROCESS:
		item->kind = MPF_PROCESS;
		get_process(r, &item->process);
		return;
	case ITEM_OF_MARK:
		item->kind = MPF_MARK;
		item->mark.time_ns = get(r);
		item->mark.name = get_string(r);
		return;
	}
	r->file.bad = true;
}

/* The tags of a chunk of events tell which items are events in columns. */
static void get_next(struct mpf_reader *r, struct mpf_item *item)
{
	uint8_t tag;

	if (events_left(&r->events) && events_next(&r->events, &r->st, &item->event)) {
		item->kind = MPF_EVENT;
		return;
	}
	r->nstrings = 0;
	tag = get_u8(r);
	if (tag & 0x0f) {
		item->kind = MPF_EVENT;
		get_event(r, tag, &item->event);
	} else if (tag) {
		get_item(r, tag, item);
	} else {
		get_further_item(r, item);
	}
}

static int corrupt(const struct mpf_reader *r, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
		       "the recording is corrupt before byte %llu: an item cannot be decoded",
		       (unsigned long long)r->file.offset);
}

int mpf_next(struct mpf_reader *r, struct mpf_item *item, struct mp_err *err)
{
	item->kind = MPF_END;
	if (!r->ended && (r->file.bad || r->events.bad))
		return corrupt(r, err);
	while (r->file.at >= r->file.n && !events_left(&r->events)) {
		int type;

		if (r->ended)
			return 0;
		type = next_chunk(r);
		if (type == CHUNK_END)
			r->ended = true;
		if (type == CHUNK_END || !type)
			return 0;
		/* Skip the index, and chunks of later versions. */
		if (type != CHUNK_ITEMS && type != CHUNK_EVENTS &&
		    !(type == CHUNK_INDEX && r->indexed))
			r->file.n = 0;
	}
	get_next(r, item);
	return r->file.bad || r->events.bad ? corrupt(r, err) : 1;
}

/* Reads an event if it is the next entry of the chunk. */
static bool next_event(struct mpf_reader *r, struct mp_event *ev)
{
	if (r->file.bad || r->events.bad)
		return false;
	if (events_left(&r->events))
		return events_next_event(&r->events, &r->st, ev);
	if (r->file.at >= r->file.n || !(r->file.raw[r->file.at] & 0x0f))
		return false;
	get_event(r, get_u8(r), ev);
	return true;
}

uint32_t mpf_next_events(struct mpf_reader *r, struct mp_event *ev, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && next_event(r, &ev[i]) && !r->file.bad && !r->events.bad)
		i++;
	return i;
}

bool mpf_seek_index(struct mpf_reader *r)
{
	struct chunk_header h;

	for (uint64_t at = r->file.offset; !chunk_header(&r->file, at, &h);
	     at += CHUNK_HEADER + h.stored) {
		if (h.type != CHUNK_INDEX)
			continue;
		r->file.offset = at;
		return r->indexed = true;
	}
	return false;
}

void mpf_skip_to_tail(struct mpf_reader *r, uint32_t chunks)
{
	uint64_t at = r->file.offset, ring[16];
	uint32_t n = 0, keep = chunks < 16 ? chunks : 16;
	struct chunk_header h;

	for (; !chunk_header(&r->file, at, &h); at += CHUNK_HEADER + h.stored) {
		if (h.type == CHUNK_ITEMS || h.type == CHUNK_EVENTS)
			ring[n++ % 16] = at;
	}
	if (n && keep)
		r->file.offset = ring[(n < keep ? 0 : n - keep) % 16];
}

uint64_t mpf_peak_blocks(struct mpf_reader *r)
{
	uint64_t begin = r->file.offset, blocks = 0;
	struct mpf_item it;

	if (r->sampled) /* the number in its finish item is an estimate */
		return 0;
	mpf_skip_to_tail(r, 1);
	while (mpf_next(r, &it, NULL) > 0) {
		if (it.kind == MPF_FINISH)
			blocks = it.finish.peak_live_blocks;
	}
	r->file.offset = begin;
	r->file.n = r->file.at = 0;
	r->file.bad = r->events.bad = r->ended = false;
	events_end_chunk(&r->events);
	r->truncated[0] = 0;
	/* Limit the number by the file's size: few blocks have less than a byte.  Culled blocks have
	 * no events. */
	return blocks < r->file.size ? blocks : r->file.size;
}

uint32_t mpf_processes(const struct mpf_reader *r)
{
	return r->processes < MP_MAX_PROCESSES ? r->processes : MP_MAX_PROCESSES;
}

double mpf_read_share(const struct mpf_reader *r)
{
	return r->file.size ? (double)r->file.offset / (double)r->file.size : 1;
}

const char *mpf_truncated(const struct mpf_reader *r)
{
	return r->truncated[0] ? r->truncated : NULL;
}

void mpf_reader_free(struct mpf_reader *r)
{
	if (!r)
		return;
	chunk_file_close(&r->file);
	for (int i = 0; i < 3; i++)
		free(r->info_strings[i]);
	event_reader_free(&r->events);
	free(r->strings);
	free(r);
}
