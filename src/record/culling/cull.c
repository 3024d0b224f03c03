/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/culling/cull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/vec.h"
#include "record/culling/cull_sums.h"
#include "record/thread_numbers.h"

#define NONE	    CULL_NONE
#define FIRST_ORDER 4096u
/* In units of config.most blocks: how long events are held back before it is decided whether that pays,
 * and how long they are not if it does not. */
#define TRIAL	  2u
#define SUSPENDED 8u
#define WORTH	  8u  /* it pays if at least one of so many blocks is culled */
#define SLICES	  64u /* a power of two; events arrive at most so many slices late */
#define AHEAD	  8u /* events between the prefetch of a node and its use; half of it for the block's */

/*
 * An event that is held back.  The events of a block form a chain: its allocation, the beginning
 * and end of each realloc that made another block of it.
 */
struct node {
	struct mp_event ev;
	uint32_t before, after; /* in the chain */
	uint32_t slice;		/* of an allocation */
	uint32_t use;		/* number of events that the node has held before */
	uint32_t next_unused;
	bool has_number;     /* the caller has the number of this block */
	bool partly_written; /* the event before it in the chain is in the file */
};

/* An event in order of arrival.  It is gone if its node has held another one since. */
struct place {
	uint32_t node, use;
};

struct per_thread {
	/* The thread's latest block, while it can still be temporary (freed before the next
	 * allocation) */
	uint64_t addr;
};

struct cull {
	struct cull_config config;
	struct mpf_writer *file;
	VEC(struct node) nodes;
	uint32_t used, unused;
	bool suspended;		/* no event is held back */
	bool overflowed;	/* there were too many, in this trial */
	uint64_t begun, culled; /* blocks of this trial; or begun since the suspension */
	struct place *order;	/* a ring */
	uint64_t oldest, newest, capacity;
	VEC(struct per_thread) threads; /* by number */
	struct thread_numbers numbers;
	struct cull_sums *sums;
	uint32_t slice;			 /* the newest */
	uint64_t start_ns[SLICES];	 /* of the newest slices, by number % SLICES */
	uint64_t waiting[UINT8_MAX + 1]; /* by kind */
};

struct cull *cull_new(const struct cull_config *config, struct mpf_writer *file)
{
	struct cull *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->config = *config;
	c->file = file;
	c->unused = NONE;
	c->capacity = FIRST_ORDER;
	c->order = calloc(c->capacity, sizeof(*c->order));
	c->sums = cull_sums_new();
	if (c->order && c->sums && !thread_numbers_init(&c->numbers))
		return c;
	cull_free(c);
	return NULL;
}

void cull_set_file(struct cull *c, struct mpf_writer *file)
{
	c->file = file;
}

void cull_free(struct cull *c)
{
	if (!c)
		return;
	vec_free(&c->nodes);
	vec_free(&c->threads);
	thread_numbers_free(&c->numbers);
	free(c->order);
	cull_sums_free(c->sums);
	free(c);
}

static struct node *node(const struct cull *c, uint32_t i)
{
	return &c->nodes.at[i];
}

static struct per_thread *thread_of(struct cull *c, uint32_t tid)
{
	uint32_t number;

	if (thread_number(&c->numbers, tid, &number) || vec_reach(&c->threads, number))
		return NULL;
	return &c->threads.at[number];
}

/* -------------------------------------------------------------------------------- order -- */

static struct place *place(const struct cull *c, uint64_t i)
{
	return &c->order[i & (c->capacity - 1)];
}

static bool is_gone(const struct cull *c, const struct place *p)
{
	return node(c, p->node)->use != p->use;
}

/* Closes the gaps of events that are gone.  If there are few, doubles the ring. */
static int make_room(struct cull *c)
{
	uint64_t to = c->oldest, capacity = c->capacity * 2;
	struct place *more;

	for (uint64_t i = c->oldest; i != c->newest; i++) {
		if (!is_gone(c, place(c, i)))
			*place(c, to++) = *place(c, i);
	}
	c->newest = to;
	if (c->newest - c->oldest <= c->capacity / 2)
		return 0;
	more = malloc(capacity * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (uint64_t i = c->oldest; i != c->newest; i++)
		more[i & (capacity - 1)] = *place(c, i);
	free(c->order);
	c->order = more;
	c->capacity = capacity;
	return 0;
}

/* Return: the slice of an allocation.  Events can arrive after slices that begin later. */
static uint32_t slice_of(const struct cull *c, const struct mp_event *ev)
{
	uint32_t back = 0;

	while (back < SLICES - 1 && ev->time_ns < c->start_ns[(c->slice - back) % SLICES])
		back++;
	return c->slice - back;
}

static int take_node(struct cull *c, uint32_t *at)
{
	if (c->unused != NONE) {
		*at = c->unused;
		c->unused = node(c, *at)->next_unused;
		return 0;
	}
	*at = (uint32_t)c->nodes.n;
	return *at == CULL_NUMBERS || vec_push(&c->nodes, (struct node){0}) ? -ENOMEM : 0;
}

/* Appends an event, which follows @before in its chain.  @at: set to its node, or NONE if it was written
 * at once. */
static int append_event(struct cull *c, const struct mp_event *ev, uint32_t before, uint32_t *at)
{
	struct node *n;

	*at = NONE;
	if (c->suspended)
		return mpf_put_event(c->file, ev);
	if ((c->newest - c->oldest == c->capacity && make_room(c)) || take_node(c, at))
		return -ENOMEM;
	n = node(c, *at);
	n->ev = *ev;
	n->before = before;
	n->after = NONE;
	n->slice = slice_of(c, ev);
	n->has_number = n->partly_written = false;
	if (before != NONE)
		node(c, before)->after = *at;
	*place(c, c->newest++) = (struct place){*at, n->use};
	c->waiting[ev->kind]++;
	c->used++;
	return 0;
}

static void take_out(struct cull *c, uint32_t i)
{
	struct node *n = node(c, i);

	c->waiting[n->ev.kind]--;
	c->used--;
	n->use++;
	n->next_unused = c->unused;
	c->unused = i;
}

static int write_node(struct cull *c, uint32_t i)
{
	struct node *n = node(c, i);
	int ret = mpf_put_event(c->file, &n->ev);

	if (n->has_number)
		c->config.let_go(c->config.ctx, &n->ev);
	if (n->after != NONE) {
		node(c, n->after)->before = NONE;
		node(c, n->after)->partly_written = true;
	}
	take_out(c, i);
	return ret;
}

void cull_prefetch(const struct cull *c, uint32_t number)
{
	const char *n = (const char *)node(c, number);

	__builtin_prefetch(n, 1);
	__builtin_prefetch(n + 64, 1);
}

/* Nodes of neighbours in order are anywhere in memory. */
static void prefetch(const struct cull *c, uint64_t at)
{
	const struct place *p = place(c, at + AHEAD / 2);

	if (at + AHEAD >= c->newest)
		return;
	cull_prefetch(c, place(c, at + AHEAD)->node);
	if (is_gone(c, p))
		return;
	mpf_prefetch(c->file, node(c, p->node)->ev.addr);
	if (node(c, p->node)->has_number)
		c->config.ahead(c->config.ctx, node(c, p->node)->ev.addr);
}

int cull_advance(struct cull *c, uint64_t now_ns)
{
	int ret = 0;

	for (; c->oldest != c->newest && !ret; c->oldest++) {
		const struct place *p = place(c, c->oldest);

		prefetch(c, c->oldest);
		if (is_gone(c, p))
			continue;
		if (now_ns != UINT64_MAX &&
		    node(c, p->node)->ev.time_ns + c->config.age_ns > now_ns)
			break;
		ret = write_node(c, p->node);
	}
	return ret;
}

/* Writes the oldest events if there are too many. */
static int limit(struct cull *c)
{
	int ret = 0;

	c->overflowed |= c->used > c->config.most;
	for (; c->used > c->config.most && !ret; c->oldest++) {
		const struct place *p = place(c, c->oldest);

		prefetch(c, c->oldest);
		if (!is_gone(c, p))
			ret = write_node(c, p->node);
	}
	return ret;
}

/* Holding events back costs time.  If most blocks live on when they have to be written, it is left off for
 * a while. */
static int weigh(struct cull *c)
{
	uint64_t limit = (uint64_t)(c->suspended ? SUSPENDED : TRIAL) * c->config.most;
	int ret = 0;

	if (c->begun++ < limit)
		return 0;
	if (c->suspended) {
		c->suspended = false;
	} else if (c->overflowed && c->culled * WORTH < c->begun) {
		ret = cull_advance(c, UINT64_MAX);
		c->suspended = true;
	}
	c->begun = c->culled = 0;
	c->overflowed = false;
	return ret;
}

struct cull_waiting cull_waiting(const struct cull *c)
{
	struct cull_calls calls = cull_sums_calls(c->sums);
	struct cull_waiting w = {
	    calls.allocations + c->waiting[EV_ALLOC], calls.frees + c->waiting[EV_FREE],
	    calls.reallocs + c->waiting[EV_REALLOC_BEGIN] + c->waiting[EV_REALLOC_END], 0};

	for (unsigned int kind = EV_MAP; kind <= EV_REMAP_END; kind++)
		w.maps += c->waiting[kind];
	return w;
}

/* -------------------------------------------------------------------------------- chains -- */

/* Return: whether the beginning of the chain whose last event is @i is in the file already. */
static bool is_partly_written(const struct cull *c, uint32_t i)
{
	while (!node(c, i)->partly_written && node(c, i)->before != NONE)
		i = node(c, i)->before;
	return node(c, i)->partly_written;
}

/* Adds the block of @ev, of slice @slice, which @by ended, to the sums. */
static int add_sum(struct cull *c, const struct mp_event *ev, uint32_t slice,
		   const struct mp_event *by, bool temporary)
{
	bool is_resized = by->kind == EV_REALLOC_END;
	struct cull_key key = {.size = ev->size,
			       .stack = ev->stack,
			       .tid = ev->tid,
			       .free_tid = by->tid,
			       .slice = slice,
			       .hook = ev->hook,
			       .free_hook = is_resized ? UINT16_MAX : by->hook,
			       .flags = ev->flags & (EV_F_NON_MAIN | EV_F_MMAPPED),
			       .weight = ev->weight};

	key.flags |= temporary ? MP_CULLED_TEMPORARY : 0;
	key.flags |= is_resized ? MP_CULLED_RESIZED : 0;
	key.flags |= ev->kind == EV_REALLOC_END ? MP_CULLED_CONTINUED : 0;
	return cull_sums_add(c->sums, &key, ev->time_ns, ev->usable,
			     by->time_ns > ev->time_ns ? by->time_ns - ev->time_ns : 0);
}

/* Culls the blocks of a chain whose last one is that of node @i and was ended by @by. */
static int cull_chain(struct cull *c, uint32_t i, const struct mp_event *by)
{
	struct mp_event ended = *by;

	while (i != NONE) {
		const struct node *born = node(c, i);
		uint32_t begin = born->before;
		bool temporary = born->ev.tid == ended.tid && !(ended.flags & EV_F_NOT_TEMPORARY);
		int ret = add_sum(c, &born->ev, born->slice, &ended, temporary);

		if (ret)
			return ret;
		ended = born->ev;
		take_out(c, i);
		i = begin != NONE ? node(c, begin)->before : NONE;
		if (begin != NONE)
			take_out(c, begin);
	}
	return 0;
}

/* -------------------------------------------------------------------------------- events -- */

/* Notes in @ev, which ends a block at @addr, whether that is temporary: events between its allocation
 * and @ev can be culled, so that a reader would not see it. */
static void flag(struct mp_event *ev, uint64_t addr, struct per_thread *t)
{
	if (!addr)
		return;
	if (t->addr != addr)
		ev->flags |= EV_F_NOT_TEMPORARY;
	else if (!(ev->flags & EV_F_NOT_TEMPORARY))
		t->addr = 0;
}

int cull_begin(struct cull *c, const struct mp_event *ev, uint32_t *number)
{
	struct per_thread *t = thread_of(c, ev->tid);

	int ret = t ? weigh(c) : -ENOMEM;

	if (!ret)
		ret = append_event(c, ev, NONE, number);
	if (ret)
		return ret;
	t->addr = ev->addr;
	if (*number == NONE)
		return 0;
	node(c, *number)->has_number = true;
	return limit(c);
}

int cull_end(struct cull *c, uint32_t number, const struct mp_event *ev)
{
	struct per_thread *t = thread_of(c, ev->tid);
	struct mp_event said = *ev;
	uint32_t at;

	if (!t)
		return -ENOMEM;
	flag(&said, ev->addr, t);
	node(c, number)->has_number = false;
	if (is_partly_written(c, number)) {
		if (append_event(c, &said, NONE, &at))
			return -ENOMEM;
		return limit(c);
	}
	c->culled++;
	return cull_chain(c, number, &said);
}

int cull_resize(struct cull *c, uint32_t number, const struct mp_event *ev,
		struct cull_realloc *begun)
{
	node(c, number)->has_number = false;
	if (append_event(c, ev, number, &begun->node)) {
		begun->node = NONE;
		return -ENOMEM;
	}
	if (begun->node == NONE)
		return 0;
	begun->use = node(c, begun->node)->use;
	return limit(c);
}

static int put_resized(struct cull *c, uint32_t begin, const struct mp_event *ev, uint32_t *at)
{
	struct per_thread *t = thread_of(c, ev->tid);
	struct mp_event said = *ev;

	if (!t)
		return -ENOMEM;
	/* A realloc that failed leaves the block as it was. */
	if (ev->addr || ev->flags & EV_F_FREED)
		flag(&said, ev->old_addr, t);
	if (ev->addr)
		t->addr = ev->addr;
	return append_event(c, &said, begin, at);
}

int cull_resized(struct cull *c, const struct cull_realloc *begun, const struct mp_event *ev,
		 uint32_t *number)
{
	bool is_held = begun->node != NONE && node(c, begun->node)->use == begun->use;
	int ret = put_resized(c, is_held ? begun->node : NONE, ev, number);

	if (ret || *number == NONE)
		return ret;
	node(c, *number)->has_number = is_held;
	if (!is_held)
		*number = NONE;
	return limit(c);
}

int cull_put(struct cull *c, const struct mp_event *ev)
{
	struct per_thread *t = thread_of(c, ev->tid);
	struct mp_event said = *ev;
	uint32_t at;
	int ret;

	if (!t)
		return -ENOMEM;
	if (ev->kind == EV_ALLOC)
		t->addr = ev->flags & EV_F_CARRIED ? 0 : ev->addr;
	if (ev->kind == EV_FREE)
		flag(&said, ev->addr, t);
	ret = ev->kind == EV_REALLOC_END ? put_resized(c, NONE, ev, &at)
					 : append_event(c, &said, NONE, &at);
	return ret ? ret : limit(c);
}

int cull_begin_short(struct cull *c, uint32_t tid, uint64_t addr)
{
	struct per_thread *t = thread_of(c, tid);

	if (!t)
		return -ENOMEM;
	t->addr = addr;
	return 0;
}

int cull_end_short(struct cull *c, const struct mp_event *born, const struct mp_event *by)
{
	struct per_thread *t = thread_of(c, by->tid);
	bool temporary;

	if (!t)
		return -ENOMEM;
	temporary = t->addr == by->addr;
	if (temporary)
		t->addr = 0;
	return add_sum(c, born, slice_of(c, born), by, temporary && born->tid == by->tid);
}

int cull_pair(struct cull *c, const struct mp_event *born, const struct mp_event *by)
{
	struct per_thread *t = thread_of(c, born->tid);

	if (!t)
		return -ENOMEM;
	t->addr = 0;
	return add_sum(c, born, slice_of(c, born), by, true);
}

const struct mp_event *cull_born(const struct cull *c, uint32_t number)
{
	return &node(c, number)->ev;
}

void cull_forget(struct cull *c, uint32_t number)
{
	node(c, number)->has_number = false;
}

int cull_write_sums(struct cull *c)
{
	return cull_sums_put(c->sums, c->file);
}

int cull_put_sums(struct cull *c, uint64_t now_ns)
{
	if (now_ns > c->start_ns[c->slice % SLICES])
		c->start_ns[++c->slice % SLICES] = now_ns;
	return cull_write_sums(c);
}

bool cull_is_suspended(const struct cull *c)
{
	return c->suspended;
}

uint64_t cull_count_sums(const struct cull *c)
{
	return cull_sums_count(c->sums);
}
