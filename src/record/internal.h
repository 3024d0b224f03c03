/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interface between the parts of the recorder: reader.c, aggregator.c, recorder.c and others. */
#ifndef RECORD_INTERNAL_H
#define RECORD_INTERNAL_H

#include <pthread.h>
#include "lib/live.h"
#include "lib/vec.h"
#include "record/clock.h"
#include "record/cull.h"
#include "record/order.h"
#include "record/origins.h"
#include "record/piece.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/stacks.h"

/* Rdtsc can run ahead of earlier instructions by microseconds */
#define READER_REORDER_TICKS 10000

/* The aggregator's state of the thread that owns a ring. */
struct slot_state {
	uint32_t tid, raw_sequence, raw_stack;
	uint32_t named_tid; /* the thread whose name was read last, at named_ns */
	uint64_t named_ns;
	/* The thread whose name was written last, and into which piece */
	uint32_t written_tid, written_piece;
	char written_name[17];
	bool left_out;
	bool in_realloc, realloc_known;
	struct live_block realloc_block;
	struct origin realloc_origin;
};

/* The previous values of stall_look(). */
struct stall {
	uint64_t moved, cpu_ns, waited_ns, looked_ns;
};

struct recorder {
	struct recorder_config config;
	/* The layout, copied once from the block, since the target can write there. */
	uint32_t nslots;
	uint64_t slots, slot_stride, slot_ring, ring_size, arena, arena_words;
	bool lossless;
	/* Indices of the claimed slots.  The reader appends; other threads read up to nactive. */
	uint32_t *active, nactive;
	bool *is_active;
	struct clock clock;
	pthread_mutex_t clock_lock;
	struct queue *queue;
	uint64_t queue_ceiling;
	pthread_t reader, aggregator;
	bool stop;   /* tells the reader to drain once more and end ... */
	bool keep;   /* ... and to leave the session to the next recorder */
	bool let_go; /* set by recorder_let_go() */
	uint64_t claimed_seen, barrier_sent, handed_over_ns; /* the reader's */
	bool settling; /* the reader's: a batch since the last empty one had records */
	long sleep_ms;
	bool after_loss; /* the reader's: its last batch was dropped */
	/* The reader's: the disk stalled, so the target does not wait although lossless */
	bool gave_up;
	struct stall stall;	 /* the reader's, then recorder_stop()'s */
	bool stalled;		 /* last result of stall_look() */
	uint64_t moved;		 /* changed by the aggregator whenever it makes progress */
	uint64_t barrier_wanted; /* the newest flush that a thread waits for */
	pthread_cond_t flushed;	 /* with lock: boundary has changed, or ended is set */
	struct recorder_boundary boundary;
	bool ended;

	/* The aggregator's */
	struct mpf_writer *file;
	struct cull *cull; /* NULL: every event is written at once */
	struct live *live;
	struct origins *origins; /* live_block.stack is an index into it; NULL: it is a stack id */
	struct piece piece;
	struct stacks stacks;
	struct live *stack_of_word; /* the agent's stack id, shifted -> the recording's id */
	struct slot_state *slot;
	uint32_t hooks_written;
	bool selects;  /* some allocations are or were left out */
	bool replaced; /* the current event allocated an address that was live */
	struct mp_losses losses;
	struct recorder_progress now;			/* working copy */
	uint64_t peak_bytes, peak_blocks, peak_time_ns; /* of the current piece */
	uint64_t last_ns, last_flush_ns, last_name_ns;
	/* End of the recording, 0: not known yet; processing can continue after it */
	uint64_t end_ns;
	struct order order;
	/* event_process(), for overtaken.c, which it uses itself */
	void (*process)(struct recorder *r, const struct pending *p, uint64_t ns);
	/* The current event: its index in order.events, its slot; waiting: the depth of events
	 * that are suspended while later records are processed first (overtaken.c). */
	size_t at;
	uint32_t at_slot, waiting;
	uint64_t tick_rate;			/* ticks per microsecond, rounded up */
	uint64_t losses_seen, losses_looked_ns; /* time of the last losses_note() */

	pthread_mutex_t lock;
	struct recorder_progress shown;
	uint64_t paused;	  /* bit 0: paused now; bits 1-63: ticks of the last change */
	uint64_t next_usage_ns;	  /* when the mappings are read next */
	struct mp_sample session; /* memprof's share of the target's memory as last measured ... */
	uint64_t next_session_ns; /* ... and when to measure it next */
	uint64_t next_code_ns; /* the aggregator's: earliest time of the next code_changed() call */
	VEC(char *) marks;     /* names of marks that are not in the file yet */
};

void *reader_run(void *recorder);
/* stall.c: updates the stall state.  To be called several times a second.  Return: whether the
 * aggregator has had work but made no progress for two seconds. */
bool stall_look(struct recorder *r);
static inline void aggregator_moves(struct recorder *r)
{
	__atomic_store_n(&r->moved, r->moved + 1, __ATOMIC_RELAXED);
}
/* Sets the agent's deadline a few seconds ahead.  Called once before the hooks are inserted, then
 * by the reader. */
void reader_heartbeat(struct recorder *r);
/* Updates r->active with newly claimed slots.  The agent increments slots_claimed before the first
 * record of a slot; @all: search even if the counter has not changed. */
void reader_find_active(struct recorder *r, bool all);
/* Wakes the reader if it sleeps. */
void reader_wake(struct recorder *r);
void *aggregator_run(void *recorder);
/* look.c: writes thread names, memory use and mappings of the target.  Called by the aggregator. */
void look_at_target(struct recorder *r, uint64_t now); /* thread names only after end_ns is set */
/* Sets SS_STACK_BY_FP for a stack that relies on frame pointers, and cuts it at the first one that
 * did not lead to a return address.  Return: how many of the @n addresses remain. */
uint32_t stack_by_fp(const struct recorder *r, const uint64_t *pc, uint32_t n, uint32_t *flags);
/* Return: the recording's id of a stack, which is then in the current piece. */
uint32_t stack_add(struct recorder *r, const uint64_t *pc, uint32_t n, uint32_t flags);
/* Return: the recording's id of the stack that a record of @slot names @agent_id; 0: none, or it is
 * unknown. */
uint32_t stack_id(struct recorder *r, uint32_t slot, uint32_t agent_id);
/* Unwinds the stack that the agent copied, for the next record of @slot. */
void stack_take_raw(struct recorder *r, uint32_t slot, const struct mpr_raw_stack *raw);
/* Makes sure that stack @id is in the current piece.  Return: @id. */
uint32_t stack_use(struct recorder *r, uint32_t id);
/* Adds (@sign 1) or subtracts (-1) a block from the sums of live memory. */
void block_account(struct recorder *r, const struct live_block *b, int sign);
/* Adds a block to the live table; @old: as in live_put().  Return: 0 or -ENOMEM. */
int block_put(struct recorder *r, const struct live_block *b, const struct origin *origin,
	      struct live_block *old);
/* Removes a block from the live table.  @origin can be NULL; it is filled only if the recording is
 * rotated.  Return: false if the block is not known. */
bool block_take(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin);
/* block_take() for a free or realloc by the program: an unknown block's allocation is searched for
 * among slightly later records (overtaken.c). */
bool block_end(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin);
/* Adds the block of an allocation event to the live table. */
void block_born(struct recorder *r, const struct mp_event *ev);
/* Accounts for a block whose address was allocated again: its free was lost. */
void block_replaced(struct recorder *r, const struct live_block *old);
/* Processes the free of a block: removes it from the live table, or counts the free by why the
 * block is not known.  Return: whether it was known. */
bool block_gone(struct recorder *r, uint64_t addr, bool own_free, struct live_block *b);
/* Processes one record of the batch, with the time @ns. */
void event_process(struct recorder *r, const struct pending *p, uint64_t ns);
/* overtaken.c: the current event allocates @addr.  If @addr is live, processes its free first, if
 * that has a slightly later time. */
void overtaken_free(struct recorder *r, uint64_t addr);
/* The current event ends an unknown block: processes its allocation first, if that has a slightly
 * later time.  Return: false if there is none. */
bool overtaken_alloc(struct recorder *r, uint64_t addr);
/* The current event is the allocator's own free of @addr.  Return: whether another thread allocated
 * @addr just before; then the free happened before that allocation, despite its later time. */
bool overtaken_by_alloc(const struct recorder *r, uint64_t addr);
/* Ends the thread's open realloc and removes its old block from the sums: the realloc finished, or
 * its end will never be seen (lost, or the thread was killed inside). */
void drop_realloc(struct recorder *r, struct slot_state *st);
/* Writes the events that culling holds back and that are old enough at @upto (UINT64_MAX: all),
 * and the sums of the culled blocks. */
void release_culled(struct recorder *r, uint64_t upto);
/* Periodic work: calibrates the clock, writes hooks, modules, the target's state and the losses,
 * and flushes the file. */
void each_second(struct recorder *r, uint64_t now);
/* Writes the marks that were set since the last call, with the time @now. */
void put_marks(struct recorder *r, uint64_t now);
/* Writes the hooks and modules that are not in the file yet. */
void put_hooks_and_modules(struct recorder *r);
/* carry_in.c: adds the heap of the previous recorder to live table, sums and file. */
void carry_in(struct recorder *r, const struct carry *c);
/* The shared part of slot @i.  The target can change its fields at any time. */
struct ss_thread *slot_at(const struct recorder *r, uint32_t i);
/* Return: the current losses, from the counters of the agent, the queue and the aggregator. */
struct mp_losses recorder_losses(struct recorder *r);
/* Notes when losses happened.  The agent only counts them, so a loss is dated between two calls. */
void losses_note(struct recorder *r, uint64_t now);
/* Counts a record of @type that the aggregator has processed. */
void losses_see(struct recorder *r, uint32_t type);
/* Publishes the aggregator's numbers as of @now (ns since the start). */
void progress_show(struct recorder *r, uint64_t now);
/* Publishes the queue's numbers in the block, for memprof status. */
void losses_show(struct recorder *r);

#endif
