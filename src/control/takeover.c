/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "control/requests.h"
#include "inject/family.h"
#include "inject/find.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/history/history.h"

struct in_realloc {
	uint32_t tid;
	bool known; /* its block is a live one of the recording */
};

struct reading {
	struct carry *c;
	VEC(struct in_realloc) reallocs; /* begun and not ended */
};

/* Counts the events before the last losses record: those are the events that its counters cover. */
static int counted_events(const char *path, pid_t pid, uint64_t *events, struct mp_losses *losses,
			  struct mp_err *err)
{
	struct mp_info info;
	struct mpf_reader *r;
	struct mpf_item it;
	uint64_t n = 0;
	int ret = mpf_open(path, &r, &info, err);

	if (ret)
		return ret;
	if (info.pid != (uint32_t)pid)
		ret = mp_fail(err, MP_EXIT_RECORDING, -EINVAL, "%s is a recording of process %u",
			      path, info.pid);
	*events = 0;
	while (!ret && (ret = mpf_next(r, &it, err)) > 0) {
		n += it.kind == MPF_EVENT;
		if (it.kind == MPF_LOSSES) {
			*events = n;
			*losses = it.losses;
		}
		ret = 0;
	}
	mpf_reader_free(r);
	return ret;
}

static int add_stack(struct carry *c, const struct mpf_item *it)
{
	struct carried_stack s = {c->pc.n, it->stack.n, it->stack.flags, 0, 0, false};
	static const struct carried_stack none;

	if (it->stack.id > UINT32_MAX / 2)
		return -EINVAL;
	while (c->stacks.n <= it->stack.id) {
		if (vec_push(&c->stacks, none))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < it->stack.n; i++) {
		if (vec_push(&c->pc, it->stack.pc[i]))
			return -ENOMEM;
	}
	c->stacks.at[it->stack.id] = s;
	return 0;
}

static int add_module(struct carry *c, const struct mp_module *m)
{
	struct mp_module copy = *m;
	char *path = strdup(m->path ? m->path : "");

	copy.path = path;
	copy.time_ns = 0;
	if (path && !vec_push(&c->modules, copy))
		return 0;
	free(path);
	return -ENOMEM;
}

static int note_realloc(struct reading *r, const struct mp_event *ev)
{
	struct in_realloc begun = {ev->tid, false};

	for (size_t i = 0; i < r->reallocs.n; i++) {
		if (r->reallocs.at[i].tid == ev->tid)
			r->reallocs.at[i--] = r->reallocs.at[--r->reallocs.n];
	}
	return ev->kind == EV_REALLOC_BEGIN ? vec_push(&r->reallocs, begun) : 0;
}

static int on_event(void *ctx, const struct mp_event *ev)
{
	if (ev->kind == EV_REALLOC_BEGIN || ev->kind == EV_REALLOC_END)
		return note_realloc(ctx, ev);
	return 0;
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct reading *r = ctx;

	switch (it->kind) {
	case MPF_STACK:
		return add_stack(r->c, it);
	case MPF_MODULE:
		return add_module(r->c, &it->module);
	default:
		return 0;
	}
}

static int on_live(void *ctx, const struct model_block *b)
{
	struct reading *r = ctx;
	struct carry *c = r->c;
	struct carried_block cb = {.addr = b->addr,
				   .size = b->size,
				   .usable = b->usable,
				   .stack = b->stack < c->stacks.n ? b->stack : 0,
				   .tid = b->tid,
				   .hook = b->hook,
				   .flags = b->flags & (EV_F_NON_MAIN | EV_F_MMAPPED),
				   .weight = b->weight,
				   .in_realloc = b->in_realloc != 0,
				   .realloc_tid = b->in_realloc};

	vec_for_each (&r->reallocs, begun)
		begun->known |= begun->tid == b->in_realloc;
	c->bytes += b->size;
	if (c->stacks.n) {
		c->stacks.at[cb.stack].bytes += b->size;
		c->stacks.at[cb.stack].blocks++;
	}
	return vec_push(&c->blocks, cb);
}

/* Keeps the counters that are cumulative for the session.  The agent still has its own counters,
 * and those of a recording start at zero. */
static void keep_losses(struct mp_losses *l)
{
	*l = (struct mp_losses){.queue_batches = l->queue_batches,
				.queue_events = l->queue_events,
				.queue_bytes = l->queue_bytes,
				.queue_alloc = l->queue_alloc,
				.queue_free = l->queue_free,
				.queue_realloc = l->queue_realloc,
				.queue_map = l->queue_map,
				.queue_other = l->queue_other,
				.queue_requested = l->queue_requested,
				.seen_alloc = l->seen_alloc,
				.seen_free = l->seen_free,
				.seen_realloc = l->seen_realloc,
				.seen_map = l->seen_map,
				.restart_alloc = l->restart_alloc,
				.restart_free = l->restart_free,
				.restart_realloc = l->restart_realloc,
				.restart_map = l->restart_map};
}

static int by_addr(const void *a, const void *b)
{
	const struct carried_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	/* The address of a block inside a realloc can already be that of another thread's block,
	 * which must come later: a reader has one live block at an address. */
	return y->in_realloc - x->in_realloc;
}

/* history_live() returns the blocks in the order of its hash table's slots.  Inserted into the next
 * table in this order, they would all probe the same part of it, and filling it would take
 * quadratic time. */
static void sort_blocks(struct carry *c)
{
	vec_sort(&c->blocks, by_addr);
}

static int replay(struct reading *r, const char *path, uint64_t events, struct mp_err *err)
{
	struct history_sink sink = {.item = on_item, .event = on_event, .ctx = r};
	struct history_until until = {.events = events};
	struct history *h = history_new(&sink);
	struct mpf_reader *reader = NULL;
	struct mp_info info;
	int ret = h ? mpf_open(path, &reader, &info, err) : -ENOMEM;

	if (!ret && events)
		ret = history_read(h, reader, &until, err);
	if (!ret && history_live(h, on_live, r))
		ret = -ENOMEM;
	vec_for_each (&r->reallocs, begun) {
		if (!ret && !begun->known && vec_push(&r->c->foreign_reallocs, begun->tid))
			ret = -ENOMEM;
	}
	mpf_reader_free(reader);
	history_free(h);
	sort_blocks(r->c);
	return ret;
}

/* Replays the recording at @path, which must be of @pid, up to the last events that its recorder is
 * certain to have written.  @budget: of carry_fit().  Return: 0 or a negative errno with @err; @c
 * must be freed in both cases. */
static int read_carry(const char *path, pid_t pid, uint64_t budget, struct carry *c,
		      struct mp_err *err)
{
	static const struct carried_stack none;
	struct reading r = {.c = c};
	struct stat st;
	uint64_t events;
	int ret;

	memset(c, 0, sizeof(*c));
	/* The path comes from the target's memory, so it is not trusted. */
	if (lstat(path, &st) || !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && geteuid()))
		return mp_fail(err, MP_EXIT_RECORDING, -ENOENT,
			       "the previous recording %s does not exist, or is not a regular file "
			       "of this user",
			       path);
	ret = counted_events(path, pid, &events, &c->losses, err);
	if (!ret)
		ret = vec_push(&c->stacks, none);
	if (!ret)
		ret = replay(&r, path, events, err);
	if (!ret)
		ret = carry_fit(c, budget);
	vec_free(&r.reallocs);
	keep_losses(&c->losses);
	if (ret && err && !err->what[0])
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot read %s: %s", path, strerror(-ret));
	return ret;
}

/* ---------------------------------------------------------------- carrying on -- */

/* Reads the journal of a session whose recorder is gone.  Return: whether there is one. */
static bool peek_without_recorder(pid_t pid, struct ss_journal *j)
{
	struct ss_control c;

	return session_peek(pid, &c, j) && !recorder_lives(j) && !session_is_forked(pid);
}

bool session_is_orphan(pid_t pid)
{
	struct ss_journal j;

	return peek_without_recorder(pid, &j) && j.state == SS_LIVE;
}

bool session_is_abandoned(pid_t pid)
{
	struct ss_journal j;

	/* Without a pid, another recorder can be about to enter its own. */
	return peek_without_recorder(pid, &j) &&
	       (j.state == SS_LIVE || (j.state != SS_DORMANT && j.recorder_pid));
}

int end_abandoned(struct target *t, struct mp_err *err)
{
	struct session s;
	struct session_id id = {0};
	uint32_t left;
	int ret;

	session_id_of(t->pid, &id);
	ret = session_adopt(&s, t, err);
	if (ret)
		return ret;
	ret = session_close(&s, err);
	session_free(&s);
	if (!ret)
		(void)family_restore(&id, 1, t->pid, &left);
	return ret;
}

static void say_carried(const struct notices *n, const char *before, const struct carry *c,
			const struct ledger *l, uint64_t missing)
{
	notice(n, "continues %s: %s (%s) carried over; mismatch %s%s", printable(before),
	       counted(c->blocks.n, "live block"), human(c->bytes),
	       missing ? counted(missing, "event") : "0",
	       missing ? ", lost with the recorder" : "");
	if (c->cleared_stacks)
		notice(n, "%s of %s exceed --carry-budget and are folded into %s",
		       human(c->cleared_bytes), counted(c->cleared_stacks, "stack"), CARRY_CLEARED);
	if (!l->exact)
		notice(n, "a thread kept writing, so the mismatch can be wrong by some events");
}

int take_over_orphan(struct session *s, struct target *t, const struct session_options *so,
		     uint64_t budget, const struct notices *notices, struct carry *c,
		     struct mp_err *err)
{
	struct mp_err why = {0};
	struct ledger ledger;
	char before[256];
	int ret = session_resume(s, t, err);

	if (ret)
		return ret;
	snprintf(before, sizeof(before), "%s", s->journal->recording);
	if (!strcmp(before, so->recording))
		return mp_fail(err, MP_EXIT_OUTPUT, -EEXIST,
			       "%s is the recording that is continued: choose another file with -o",
			       before);
	ret = read_carry(before, t->pid, budget, c, &why);
	if (!ret && session_take_over(s, so))
		return mp_fail(err, MP_EXIT_ATTACHED, -EBUSY,
			       "another memprof is taking over the session of process %d", t->pid);
	if (!ret)
		ret = ledger_take(s->block, &s->layout, &t->mem, ss_accounts_addr(s->journal),
				  &ledger);
	if (ret)
		return mp_fail(err, MP_EXIT_RECORDING, ret,
			       "the live heap cannot be taken over: %s; to start a new recording, "
			       "first: memprof detach -p %d",
			       why.what[0] ? why.what : strerror(-ret), t->pid);
	say_carried(notices, before, c, &ledger, ledger_settle(&ledger, &c->losses));
	return 0;
}
