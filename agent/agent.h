/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The agent: what lives in the target.  It runs inside somebody's production process, in any
 * thread, in signal handlers, during exit, on small stacks.  Therefore everywhere in this folder:
 *
 *  - no libc, no TLS, no lock, no vector register, no allocation, errno never touched;
 *  - all state is in the session block (shared memory) or on the stack, at most AG_STACK_BYTES;
 *  - memory that is not the session's own is read only after it is known to be mapped;
 *  - loops are bounded;
 *  - everything is re-entrant: a signal may come between any two instructions and call us again.
 *
 * After fork the child never gets here: its gate page is zero (MADV_WIPEONFORK).
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/session.h"
#include "unwind/rule.h"
#include "unwind/step.h"
#if defined(__x86_64__)
#include "arch/x86_64/agent-arch.h"
#elif defined(__aarch64__)
#include "arch/aarch64/agent-arch.h"
#elif defined(__arm__)
#include "arch/arm/agent-arch.h"
#elif defined(__mips64)
#include "arch/mips64/agent-arch.h"
#endif

/* A word of the stack. */
typedef uintptr_t ag_word_t;

static inline ag_word_t word_at(uint64_t addr)
{
	return *(const ag_word_t *)(uintptr_t)addr;
}

#define PAGE	    4096ull
#define AG_LEVELS   3	     /* hooks in one thread at once: a signal handler inside a hook, ... */
#define AG_WALKS    64	     /* cached walks per thread ... */
#define AG_WAYS	    4	     /* ... that one index may have */
#define AG_LATEST   AG_WALKS /* index of the walk that was taken last */
#define AG_SEEN	    256	     /* walks that are remembered by a hash */
#define AG_WALK_MAX 192	     /* frames a cached walk can hold */
#define AG_RANGES   4	     /* stack ranges known to be readable */

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Where a call pushes the return address, the word's own address is the stack pointer's. */
#define AG_SP_MAX (AG_RA_SIZE ? 1 : AG_WALK_MAX)

struct ag_word {
	uint64_t at, is; /* the word at this address of the stack is this one */
};

/*
 * A verified walk.  ra[0] is the outermost frame's return address, ra[n - 1] the caller's, ra[n].is
 * the hooked function.  check[] are the frame pointers that came from memory and that the CFA of a
 * frame needs, outermost first.
 * If sp, leaf, fp0 where it matters, and every listed word are the same again, the same rules give
 * the same frames.
 */
struct ag_walk {
	uint64_t sp, fp0, leaf; /* sp 0: empty */
	uint64_t fp0_mask;	/* 0: fp0 does not matter */
	uint64_t end;		/* of the stack words that are compared */
	uint32_t n, nchecks;
	uint32_t generation;
	uint32_t stack;
	struct ag_word ra[AG_WALK_MAX + 1];
	struct ag_word check[AG_WALK_MAX];
};

/* What is known of a frame of the latest walk and all outer ones, for the next walk to go on from.
 */
struct ag_step {
	uint64_t hash;	  /* of frames 0 .. this one */
	uint64_t fp;	  /* the frame pointer register there */
	uint16_t nchecks; /* of frames 0 .. this one */
	bool needs_fp;	  /* this frame's CFA or that of an outer one depends on fp ... */
	bool passes_fp;	  /* ... and fp is that of the frame inside */
};

/* A frame as it was just found, innermost first. */
struct ag_fresh {
	struct ag_word ra;
	uint64_t sp, fp, fp_slot; /* fp_slot 0: fp is that of the frame inside */
	bool needs_fp;
};

struct ag_range {
	uint64_t low, high;
	uint64_t limit; /* memory from here on is no stack's */
};

/* A thread's slot: the part the recorder sees, then our own. */
struct ag_thread {
	struct ss_thread s;
	uint64_t unmaps_seen;
	uint32_t next_way, next_range;
	struct ss_local sampler; /* when another thread has the gate's */
	struct ag_range range[AG_RANGES];
	struct uw_state state[AG_LEVELS][2]; /* of full walks */
	uint64_t scratch[AG_LEVELS][SS_MAX_FRAMES];
	struct ag_fresh fresh[AG_WALK_MAX];
	struct ag_step step[AG_WALK_MAX]; /* of the latest walk */
	uint64_t step_sp[AG_SP_MAX];	  /* the stack pointer there; see AG_SP_MAX */
	uint64_t seen[AG_SEEN];		  /* walks that were taken: tag ^ id */
	/* What a walk is looked for by; 0: none. */
	uint64_t tag[AG_WALKS];
	struct ag_walk walk[AG_WALKS + 1]; /* the last one is the latest that was taken */
};

_Static_assert(sizeof(struct ag_thread) <= 768 << 10, "inject/session.c: SLOT_OWN_BYTES");

/* The pages behind our text; placed by agent.lds. */
extern struct ss_gate ag_gate __attribute__((visibility("hidden")));
extern uint8_t ag_filter[SS_FILTER] __attribute__((visibility("hidden")));
extern struct ss_local ag_locals[SS_LOCALS] __attribute__((visibility("hidden")));
extern struct ss_account ag_accounts[] __attribute__((visibility("hidden")));

/* The address of one of them, where the compiler's way to it needs the image to be relocated. */
#ifndef AG_OWN
#define AG_OWN(symbol) (&(symbol))
#endif

static inline struct ss_control *control(void)
{
	return (struct ss_control *)(uintptr_t)AG_OWN(ag_gate)->session_addr;
}

static inline void *at_offset(struct ss_control *c, uint64_t offset)
{
	return (char *)c + offset;
}

static inline struct ss_local *local_of(uint64_t tp)
{
	return *AG_OWN(ag_locals) + (uint32_t)(tp * SS_LOCAL_HASH >> 30) % SS_LOCALS;
}

/* The index is in shared memory: the mask keeps the account inside the private mapping. */
static inline struct ss_account *account_of(const struct ag_thread *t)
{
	return (struct ss_account *)AG_OWN(ag_accounts) +
	       (t->s.account & AG_OWN(ag_gate)->account_mask);
}

/* slot.c: finds or claims the slot, and sees to a thread that is new in it. */
struct ag_thread *thread_slot_find(struct ss_control *c, uint64_t tp);

/* The calling thread's slot, or NULL (no slot left: the event is counted as lost).  A new thread
 * may have got a dead one's control block: the id tells. */
static inline struct ag_thread *thread_slot(struct ss_control *c)
{
	uint64_t tp = thread_pointer();
	struct ag_thread *t = (struct ag_thread *)(uintptr_t)local_of(tp)->slot_addr;

	if (likely(t && t->s.tp == tp && c->tid_known &&
		   *(const uint32_t *)(uintptr_t)(tp + c->tid_offset) == t->s.tid))
		return t;
	return thread_slot_find(c, tp);
}

/* A hooked call being served. */
struct ag_call {
	struct ss_control *c;
	struct ag_thread *t;
	struct ss_account *account; /* of @t */
	const struct ag_frame *f;
	uint32_t level;		  /* hooks below this one in the same thread */
	bool inner;		  /* made by the allocator itself while it serves a hooked call */
	struct ss_local *sampler; /* in sampling mode */
};

/* stack.c: what a call that arrives while the thread is in a hook is. */
enum ag_nesting {
	AG_INNER,	/* the allocator's own */
	AG_FROM_SIGNAL, /* of a signal handler that interrupted the hook: an event of its own */
	AG_FRESH,	/* the hook was left by longjmp: nothing is nested */
};
enum ag_nesting stack_nesting(const struct ag_call *call);

/* stack.c: a hook whose frame may be listed as left (struct ss_account) returns after all. */
void stack_frame_returned(const struct ag_call *call);

/* Of the main thread's stack every page from @sp to its end is mapped. */
static inline bool on_main_stack(const struct ss_control *c, uint64_t sp)
{
	return sp >= c->main_stack_low && sp < c->main_stack_high;
}

/* readable.c: the memory of the stack that @sp is in ends at this address, or before it. */
uint64_t stack_limit(const struct ss_control *c, const struct ag_thread *t, uint64_t sp);

#endif
