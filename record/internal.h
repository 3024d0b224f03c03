/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between reader.c, aggregate.c and recorder.c. */
#ifndef RECORD_INTERNAL_H
#define RECORD_INTERNAL_H

#include <pthread.h>
#include "record/clock.h"
#include "record/cull.h"
#include "lib/live.h"
#include "lib/vec.h"
#include "record/order.h"
#include "record/origins.h"
#include "record/piece.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/stacks.h"

#define READER_REORDER_TICKS 10000 /* rdtsc may run ahead of earlier instructions: microseconds */

/* A ring's thread: what it has begun, and whether its allocations are taken. */
struct slot_state {
	uint32_t tid, raw_sequence, raw_stack;
	uint32_t named_tid; /* whose name was looked at, at named_ns */
	uint64_t named_ns;
	uint32_t written_tid, written_piece; /* whose name was written last, into which piece */
	char written_name[17];
	bool left_out;
	bool in_realloc, realloc_known;
	struct live_block realloc_block;
	struct origin realloc_origin;
};

/* What stall_look() saw last. */
struct stall {
	uint64_t moved, cpu_ns, waited_ns, looked_ns;
};

struct recorder {
	struct recorder_config config;
	uint32_t nslots; /* copied once from the block: the target can write there */
	uint64_t slots, slot_stride, slot_ring, ring_size, arena, arena_words;
	bool lossless;
	/* Slots that have been claimed: the reader appends, others read up to nactive. */
	uint32_t *active, nactive;
	bool *is_active;
	struct clock clock;
	pthread_mutex_t clock_lock;
	struct queue *queue;
	uint64_t queue_ceiling;
	pthread_t reader, aggregator;
	bool stop;   /* reader: drain once more and end ... */
	bool keep;   /* ... leaving the session to another recorder */
	bool let_go; /* recorder_let_go() */
	uint64_t claimed_seen, barrier_sent, handed_over_ns; /* the reader's */
	bool settling; /* the reader's: its last batch was not empty */
	long sleep_ms;
	bool after_loss;	 /* the reader's: its last batch was dropped */
	bool gave_up;		 /* the reader's: lossless, but the target does not wait now */
	struct stall stall;	 /* the reader's, then recorder_stop()'s */
	bool stalled;		 /* as stall_look() said last */
	uint64_t moved;		 /* by the aggregator: it has done something since */
	uint64_t barrier_wanted; /* the newest that somebody waits for */
	pthread_cond_t flushed;	 /* with lock: boundary changed, or ended is set */
	struct recorder_boundary boundary;
	bool ended;

	/* the aggregator's */
	struct mpf_writer *file;
	struct cull *cull; /* NULL: every event is written at once */
	struct live *live;
	struct origins *origins; /* live_block.stack is an index in it; NULL: a stack */
	struct piece piece;
	struct stacks stacks;
	struct live *stack_of_word; /* agent's stack id, shifted -> recording's */
	struct slot_state *slot;
	uint32_t hooks_written;
	bool selects;  /* some allocations are, or were once, left out */
	bool replaced; /* the event at hand allocated an address that was live */
	struct mp_losses losses;
	struct recorder_progress now;			/* working copy */
	uint64_t peak_bytes, peak_blocks, peak_time_ns; /* of the piece */
	uint64_t last_ns, last_flush_ns, last_name_ns;
	uint64_t end_ns; /* of the recording, when that is known; what is later is work left over */
	struct order order;
	/* The event at hand: where it is in the order, whose it is, events that wait for it. */
	size_t at;
	uint32_t at_slot, waiting;
	uint64_t tick_rate;			/* ticks in a microsecond, rounded up */
	uint64_t losses_seen, losses_looked_ns; /* when the counters were looked at last */

	pthread_mutex_t lock;
	struct recorder_progress shown;
	uint64_t paused; /* bit 0: whether; above it since when (ticks), before it was the other */
	uint64_t next_usage_ns;	  /* when the mappings are looked at again */
	struct mp_sample session; /* memprof's share in the target's memory, when last looked ... */
	uint64_t next_session_ns; /* ... and when it is looked at again */
	uint64_t next_code_ns;	  /* the aggregator's: when code_changed() may be asked again */
	VEC(char *) marks;	  /* that are not in the file yet */
};

void *reader_run(void *recorder);
/* stall.c: has the aggregator, which has work, not moved for two seconds?  To be called several
 * times a second. */
bool stall_look(struct recorder *r);
static inline void aggregator_moves(struct recorder *r)
{
	__atomic_store_n(&r->moved, r->moved + 1, __ATOMIC_RELAXED);
}
/* The agent records until a few seconds from now: once before the hooks go in, then the reader's.
 */
void reader_heartbeat(struct recorder *r);
/* Slots that threads have claimed; the agent says when there are new ones, before its first record
 * is there.  @all: also if it did not. */
void reader_find_active(struct recorder *r, bool all);
/* Ends its sleep. */
void reader_wake(struct recorder *r);
void *aggregator_run(void *recorder);
/* look.c: writes what is seen of the target from outside; the aggregator's. */
void look_at_target(struct recorder *r, uint64_t now); /* names only, once it is let go */
/* The recording's id of a stack; it is in the file then. */
/* Marks a stack that relies on frame pointers, and cuts it off where one led to what is no return
 * address.  Return: how many of the @n addresses are left. */
uint32_t stack_by_fp(const struct recorder *r, const uint64_t *pc, uint32_t n, uint32_t *flags);
uint32_t stack_add(struct recorder *r, const uint64_t *pc, uint32_t n, uint32_t flags);
/* The same id; the stack is in the piece at hand then. */
uint32_t stack_use(struct recorder *r, uint32_t id);
/* A block enters (1) or leaves (-1) the sums of what is live. */
void block_account(struct recorder *r, const struct live_block *b, int sign);
/* Puts a block into the table; @old: as live_put().  Return: 0 or -ENOMEM. */
int block_put(struct recorder *r, const struct live_block *b, const struct origin *origin,
	      struct live_block *old);
/* Takes it out; @origin may be NULL, and is only filled for a recording in pieces. */
bool block_take(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin);
/* block_take() of a block that a program ends: its allocation may have been overtaken. */
bool block_end(struct recorder *r, uint64_t addr, struct live_block *b, struct origin *origin);
/* The block of an allocation. */
void block_born(struct recorder *r, const struct mp_event *ev);
/* It was freed, and its free was lost. */
void block_replaced(struct recorder *r, const struct live_block *old);
/* Its free: takes it out, or counts it as one that is not known. */
bool block_gone(struct recorder *r, uint64_t addr, bool own_free, struct live_block *b);
/* Takes up one record of the batch, as of @ns. */
void event_process(struct recorder *r, const struct pending *p, uint64_t ns);
/* overtaken.c: the event at hand allocates @addr: if that is live, takes up the free of it that was
 * overtaken. */
void overtaken_free(struct recorder *r, uint64_t addr);
/* The event at hand ends a block that is not known: takes up its allocation that was overtaken.
 * Return: false when there is none. */
bool overtaken_alloc(struct recorder *r, uint64_t addr);
/* Has the block of the allocator's own free at hand only just been allocated, by another thread?
 * Then that allocation overtook the free. */
bool overtaken_by_alloc(const struct recorder *r, uint64_t addr);
/* The block that a realloc began with is gone: the realloc ended, or its end never came (lost, or
 * its thread was killed in it). */
void drop_realloc(struct recorder *r, struct slot_state *st);
/* What culling holds back and is older than @upto; UINT64_MAX: all of it. */
void release_culled(struct recorder *r, uint64_t upto);
/* Looks, losses, names: then all is handed to the kernel. */
void each_second(struct recorder *r, uint64_t now);
void put_hooks_and_modules(struct recorder *r);
/* carry_in.c: puts the heap of the recorder before into table, sums and file. */
void carry_in(struct recorder *r, const struct carry *c);
/* The slot's shared part; its fields change under us. */
struct ss_thread *slot_at(const struct recorder *r, uint32_t i);
/* Losses as of now, from the agent's counters and the queue's. */
struct mp_losses recorder_losses(struct recorder *r);
/* The agent only counts: a loss is known to lie between two looks, of which this is one. */
void losses_note(struct recorder *r, uint64_t now);
/* A record was taken up by the aggregator. */
void losses_see(struct recorder *r, uint32_t type);
/* The aggregator's numbers for who asks, as of @now (ns since the start). */
void progress_show(struct recorder *r, uint64_t now);
/* The queue's numbers, for memprof status. */
void losses_show(struct recorder *r);

#endif
