/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the samples of perf events from their rings; formats in linux/perf_event.h. */
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "formats/pair.h"
#include "lib/deadline.h"
#include "record/kernel/probes_internal.h"

#define SETTLED_NS 5000000u /* time after which a sample is certainly in its ring */

/* -------------------------------------------------------------------------------- decoding -- */

struct cursor {
	const uint8_t *at, *end;
};

static uint64_t get(struct cursor *c)
{
	uint64_t v;

	if (c->end - c->at < 8) {
		c->at = c->end;
		return 0;
	}
	memcpy(&v, c->at, sizeof(v));
	c->at += sizeof(v);
	return v;
}

static int grow_tellers(struct probes *p)
{
	uint64_t cap = p->tellers ? p->tellers * 2 : 4096;
	struct teller *more = calloc(cap, sizeof(*more));

	if (!more)
		return -ENOMEM;
	p->told = 0;
	for (uint64_t i = 0; i < p->tellers; i++) {
		uint64_t at = p->teller[i].key * 0x9e3779b97f4a7c15ull >> 20;

		if (!p->teller[i].id)
			continue;
		while (more[at & (cap - 1)].key)
			at++;
		more[at & (cap - 1)] = p->teller[i];
		p->told++;
	}
	free(p->teller);
	p->teller = more;
	p->tellers = cap;
	return 0;
}

/* Forgets the events of a thread that ended, since its id can be reused. */
static void forget_thread(struct probes *p, uint32_t tid)
{
	for (uint64_t i = 0; i < p->tellers; i++) {
		if (p->teller[i].key && (p->teller[i].key - 1) >> 32 == tid)
			p->teller[i].id = 0;
	}
}

/* Return: whether another event already delivers the thread's samples of this point.  A point has
 * an event per processor and per thread that it was opened for, so only ids of the same processor
 * are compared. */
static bool is_double(struct probes *p, uint32_t tid, uint32_t point, uint32_t cpu, uint64_t id)
{
	uint64_t key = ((uint64_t)tid << 32 | (uint64_t)cpu << 20 | point) + 1, at;

	if (p->told * 2 >= p->tellers && grow_tellers(p))
		return false;
	for (at = key * 0x9e3779b97f4a7c15ull >> 20; p->teller[at & (p->tellers - 1)].key; at++) {
		struct teller *t = &p->teller[at & (p->tellers - 1)];

		if (t->key != key)
			continue;
		if (!t->id)
			t->id = id;
		return t->id != id;
	}
	p->teller[at & (p->tellers - 1)] = (struct teller){key, id};
	p->told++;
	return false;
}

static void get_regs(const struct probes *p, struct cursor *c, struct probe_sample *s)
{
	uint64_t abi = get(c), mask = p->arch->perf.regs_mask;

	for (uint32_t bit = 0; abi && bit < 64; bit++) {
		int8_t column = p->arch->perf.column[bit];
		uint64_t value;

		if (!(mask >> bit & 1))
			continue;
		value = get(c);
		for (int i = 0; i < ARCH_ARGS; i++) {
			if (p->arch->perf.arg[i] == bit)
				s->arg[i] = value;
		}
		if (p->arch->perf.result == bit)
			s->result = value;
		if (column < 0)
			continue;
		s->regs[column] = value;
		s->valid |= 1u << column;
	}
}

/* Return: false if the record is damaged. */
static bool get_stack(struct cursor *c, struct probe_sample *s)
{
	uint64_t size = get(c);

	if (size > (uint64_t)(c->end - c->at))
		return false;
	s->stack = c->at;
	c->at += size;
	s->stack_bytes = size ? (uint32_t)get(c) : 0; /* bytes that were copied */
	if (s->stack_bytes > size)
		s->stack_bytes = (uint32_t)size;
	return true;
}

/* Return: false if the record is not a sample of the target's, or a duplicate. */
static bool decode_sample(struct probes *p, uint32_t cpu, struct cursor *c, struct probe_sample *s)
{
	const struct event *e;
	const struct point *pt;
	uint64_t id = get(c), tids;

	e = probes_event(p, id);
	tids = get(c);
	s->time_ns = get(c);
	if (!e || (pid_t)pair_first(tids) != p->pid)
		return false;
	pt = &p->points.at[e->point];
	s->tid = pair_second(tids);
	if (is_double(p, s->tid, e->point, cpu, id))
		return false;
	s->kind = pt->kind;
	s->hook = pt->hook;
	s->is_major = pt->is_major;
	if (pt->kind == PROBE_FAULT)
		s->addr = get(c);
	get_regs(p, c, s);
	if (pt->stack_bytes && !get_stack(c, s))
		return false;
	if (pt->kind == PROBE_FAULT && p->page_sizes)
		s->page_bytes = get(c);
	return true;
}

/* Return: the time of any record.  It is the last but one word of a sample_id (before the
 * identifier) and the third of a sample. */
static uint64_t time_of(const struct perf_event_header *h)
{
	const uint8_t *end = (const uint8_t *)h + h->size;
	uint64_t time = 0;

	if (h->type == PERF_RECORD_SAMPLE && h->size >= sizeof(*h) + 24)
		memcpy(&time, (const uint8_t *)(h + 1) + 16, sizeof(time));
	else if (h->type != PERF_RECORD_SAMPLE && h->size >= sizeof(*h) + 24)
		memcpy(&time, end - 16, sizeof(time));
	return time;
}

static bool decode(struct probes *p, const struct cpu *cpu, const struct perf_event_header *h,
		   struct probe_sample *s)
{
	struct cursor c = {(const uint8_t *)(h + 1), (const uint8_t *)h + h->size};
	uint64_t word;

	memset(s, 0, sizeof(*s));
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		return !p->execed && decode_sample(p, (uint32_t)cpu->cpu, &c, s);
	case PERF_RECORD_LOST:
		get(&c);
		s->kind = PROBE_LOST;
		s->lost = get(&c);
		p->lost_told += s->lost;
		return true;
	case PERF_RECORD_COMM: /* pid, tid */
		p->execed |=
		    h->misc & PERF_RECORD_MISC_COMM_EXEC && (pid_t)pair_first(get(&c)) == p->pid;
		return false;
	case PERF_RECORD_EXIT: /* pid, ppid, tid, ptid */
		word = get(&c);
		s->kind = PROBE_THREAD_EXIT;
		s->time_ns = time_of(h);
		s->tid = pair_first(get(&c));
		forget_thread(p, s->tid);
		return (pid_t)pair_first(word) == p->pid;
	default:
		return false;
	}
}

/* -------------------------------------------------------------------------------- draining -- */

/* Appends new records from the ring to those left over. */
static void fill_batch(struct cpu *c)
{
	uint64_t n = ring_ready(&c->ring), room = 2 * c->ring.size - c->left;

	if (n > room)
		n = room & ~7ull;
	ring_copy(&c->ring, c->buf + c->left, n);
	ring_advance(&c->ring, n);
	c->left += n;
}

/* Return: the record at @at, or NULL if there is none or it is damaged. */
static const struct perf_event_header *record_at(const struct cpu *c, uint64_t at)
{
	const struct perf_event_header *h = (const void *)(c->buf + at);

	return at + sizeof(*h) <= c->left && h->size >= sizeof(*h) && h->size <= c->left - at
		   ? h
		   : NULL;
}

static void keep_rest(struct cpu *c, uint64_t from)
{
	memmove(c->buf, c->buf + from, c->left - from);
	c->left -= from;
}

/* Reports samples whose loss the kernel has not reported: it does that only when the ring has room
 * again, which can be never. */
static void tell_lost(struct probes *p, void (*take)(void *ctx, const struct probe_sample *s),
		      void *ctx)
{
	struct probe_sample s = {.kind = PROBE_LOST, .lost = probes_lost(p)};

	if (s.lost <= p->lost_told)
		return;
	s.lost -= p->lost_told;
	p->lost_told += s.lost;
	take(ctx, &s);
}

uint64_t probes_drain(struct probes *p, void (*take)(void *ctx, const struct probe_sample *s),
		      void *ctx, bool last)
{
	uint64_t until = last ? UINT64_MAX : mono_ns() - SETTLED_NS;
	uint64_t *at = calloc(p->cpus.n, sizeof(*at));

	if (!at)
		return 0;
	vec_for_each (&p->cpus, c)
		fill_batch(c);
	for (;;) {
		const struct perf_event_header *first = NULL;
		uint64_t earliest = UINT64_MAX;
		struct probe_sample s;
		size_t from = 0;

		for (size_t i = 0; i < p->cpus.n; i++) {
			const struct perf_event_header *h = record_at(&p->cpus.at[i], at[i]);
			uint64_t time = h ? time_of(h) : 0;

			if (!h || time > until || (first && time >= earliest))
				continue;
			first = h;
			earliest = time;
			from = i;
		}
		if (!first)
			break;
		if (decode(p, &p->cpus.at[from], first, &s))
			take(ctx, &s);
		at[from] += first->size;
	}
	if (last)
		tell_lost(p, take, ctx);
	for (size_t i = 0; i < p->cpus.n; i++)
		keep_rest(&p->cpus.at[i], at[i]);
	free(at);
	return until;
}

void probes_wait(struct probes *p, int timeout_ms)
{
	struct pollfd fds[64];
	nfds_t n = 0;

	for (size_t i = 0; i < p->cpus.n && n < 64; i++)
		fds[n++] = (struct pollfd){.fd = p->cpus.at[i].fd, .events = POLLIN};
	poll(fds, n, timeout_ms);
}
