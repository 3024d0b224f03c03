/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The agent: the code that memprof puts into the target.  It runs inside a production process, in
 * any thread, in signal handlers, during exit, on small stacks.  Therefore everywhere in this
 * folder:
 *
 * - no libc, no TLS, no lock, no vector register, no allocation, errno is never changed;
 *
 * - all state is in the session block (shared memory), in the private pages after the agent's text,
 *   or on the stack (a function uses at most 320 bytes of it, see agent/check.sh);
 *
 * - memory that is not the session's own is read only after it is known to be mapped;
 *
 * - loops are bounded;
 *
 * - everything is re-entrant: a signal can come between any two instructions and call a hook.
 *
 * A forked child never gets here: its gate page is zero (MADV_WIPEONFORK).
 *
 * Names that more than one file of the agent uses begin with ag_ or AG_, so that a reader sees
 * which code runs in the target.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/session.h"
#include "unwind/rule.h"
#include "unwind/step.h"
/* What each of these defines: doc/recipes/architecture.md. */
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

static inline ag_word_t ag_word_at(uint64_t addr)
{
	return *(const ag_word_t *)(uintptr_t)addr;
}

#define AG_PAGE	    4096ull
#define AG_LEVELS   3	     /* hooks active at once in one thread, in signal handlers */
#define AG_WALKS    64	     /* cached walks per thread ... */
#define AG_WAYS	    4	     /* ... and per set of the cache */
#define AG_LATEST   AG_WALKS /* index of the latest walk */
#define AG_SEEN	    256	     /* walks remembered by a hash */
#define AG_WALK_MAX 192	     /* frames a cached walk can hold */
#define AG_RANGES   4	     /* stack ranges known to be readable */
#define AG_RECENT   128	     /* recent blocks that are found by their address */

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* If a call pushes the return address, the address of that word gives the stack pointer. */
#define AG_SP_MAX (AG_RA_SIZE ? 1 : AG_WALK_MAX)

struct ag_word {
	uint64_t at, is; /* the word that was at this address of the stack */
};

/*
 * A verified walk.  ra[0] is the outermost frame's return address, ra[n - 1] the caller's, ra[n].is
 * the hooked function.  check[] has the frame pointers that were read from memory and that the CFA
 * of a frame depends on, outermost first.
 * If sp, leaf, fp0 (where it matters) and every listed word are unchanged, the same rules yield the
 * same frames.
 */
struct ag_walk {
	uint64_t sp, fp0, leaf; /* sp 0: empty */
	uint64_t fp0_mask;	/* 0: fp0 does not matter */
	uint64_t end;		/* end of the stack words that are compared */
	uint32_t n, nchecks;
	uint32_t generation;
	uint32_t stack;
	struct ag_word ra[AG_WALK_MAX + 1];
	struct ag_word check[AG_WALK_MAX];
};

/* State of a frame of the latest walk, including all outer frames; the next walk can continue from
 * it. */
struct ag_step {
	uint64_t hash;	  /* of frames 0 to this one */
	uint64_t fp;	  /* the frame pointer register in this frame */
	uint16_t nchecks; /* number of checks of frames 0 to this one */
	bool needs_fp;	  /* the CFA of this frame or of an outer one depends on fp ... */
	bool passes_fp;	  /* ... and fp still has the value of the next inner frame */
};

/* A frame that was just found; the array begins with the innermost one. */
struct ag_fresh {
	struct ag_word ra;
	uint64_t sp, fp, fp_slot; /* fp_slot 0: fp has the value of the next inner frame */
	bool needs_fp;
};

struct ag_range {
	uint64_t low, high;
	uint64_t limit; /* memory from here on does not belong to this stack */
};

#define AG_KINDS      512 /* kinds of allocations that are told apart, by two hashes */
#define AG_KINDS_BITS 16  /* a kind with 2^16 allocations in a window is not rare at all */

/* State of thinning (thin.h). */
struct ag_thinning {
	uint64_t random; /* 0: not started */
	uint64_t window; /* start of the current window, ticks */
	/* 1: allocations were thinned out since the latest one that was recorded */
	uint32_t skipped;
	/* Allocations by each of the hashes, halved with every window (ss_control.thin_window) */
	uint16_t kind[2][AG_KINDS];
};

/* A thread slot: the part that the recorder reads, then the agent's own. */
struct ag_thread {
	struct ss_thread s;
	uint64_t unmaps_seen;
	uint32_t next_way, next_range;
	struct ss_local sampler; /* used if another thread has the one in the private pages */
	struct ag_range range[AG_RANGES];
	struct uw_state state[AG_LEVELS][2]; /* of full walks */
	uint64_t scratch[AG_LEVELS][SS_MAX_FRAMES];
	struct ag_fresh fresh[AG_WALK_MAX];
	struct ag_step step[AG_WALK_MAX]; /* of the latest walk */
	uint64_t step_sp[AG_SP_MAX];	  /* the stack pointer there; see AG_SP_MAX */
	uint64_t seen[AG_SEEN];		  /* walks that were made: tag ^ id */
	/* By a hash of the block's address: position of its MPR_ALLOC record in the ring.  Only a
	 * hint: see ag_ring_end_block(). */
	uint64_t recent[AG_RECENT];
	struct ag_thinning thinning;
	/* The key by which a cached walk is found; 0: none. */
	uint64_t tag[AG_WALKS];
	struct ag_walk walk[AG_WALKS + 1]; /* the last one is the latest walk */
};

_Static_assert(sizeof(struct ag_thread) <= 768 << 10, "inject/session.c: SLOT_OWN_BYTES");

/* The private pages after the agent's text; placed by agent.lds. */
extern struct ss_gate ag_gate __attribute__((visibility("hidden")));
extern uint8_t ag_filter[SS_FILTER] __attribute__((visibility("hidden")));
extern struct ss_local ag_locals[SS_LOCALS] __attribute__((visibility("hidden")));
extern struct ss_account ag_accounts[] __attribute__((visibility("hidden")));

/* The address of one of them; redefined where the compiler's usual code would need a relocation. */
#ifndef AG_OWN
#define AG_OWN(symbol) (&(symbol))
#endif

static inline struct ss_control *ag_control(void)
{
	return (struct ss_control *)(uintptr_t)AG_OWN(ag_gate)->session_addr;
}

static inline void *ag_at_offset(struct ss_control *c, uint64_t offset)
{
	return (char *)c + offset;
}

static inline struct ss_local *ag_local_of(uint64_t tp)
{
	return *AG_OWN(ag_locals) + (uint32_t)(tp * SS_LOCAL_HASH >> 30) % SS_LOCALS;
}

/* The index is in shared memory, which can be corrupt: the mask keeps the account inside the
 * private mapping. */
static inline struct ss_account *ag_account_of(const struct ag_thread *t)
{
	return (struct ss_account *)AG_OWN(ag_accounts) +
	       (t->s.account & AG_OWN(ag_gate)->account_mask);
}

/* slot.c: finds or claims the thread's slot, and initializes it for a new thread. */
struct ag_thread *ag_thread_slot_find(struct ss_control *c, uint64_t tp);

/* Return: the calling thread's slot, or NULL if ag_thread_slot_find() must look for it.  A new thread
 * can have the control block of a dead one, so the thread id is compared. */
static inline struct ag_thread *ag_thread_slot_known(const struct ss_control *c)
{
	uint64_t tp = ag_thread_pointer();
	struct ag_thread *t = (struct ag_thread *)(uintptr_t)ag_local_of(tp)->slot_addr;

	if (likely(t && t->s.tp == tp && c->tid_known &&
		   *(const uint32_t *)(uintptr_t)(tp + c->tid_offset) == t->s.tid))
		return t;
	return NULL;
}

/* Return: the calling thread's slot, or NULL if there is none left; the event is counted as lost. */
static inline struct ag_thread *ag_thread_slot(struct ss_control *c)
{
	struct ag_thread *t = ag_thread_slot_known(c);

	return likely(t) ? t : ag_thread_slot_find(c, ag_thread_pointer());
}

/* A hooked call that is being handled. */
struct ag_call {
	struct ss_control *c;
	struct ag_thread *t;
	struct ss_account *account; /* of @t */
	const struct ag_frame *f;
	uint32_t level;		  /* hooks active in this thread before */
	bool inner;		  /* made by the allocator in a hooked call */
	struct ss_local *sampler; /* in sampling mode */
};

/* stack.c: classifies a call that arrives while the thread's account shows that it is in a hook. */
enum ag_nesting {
	AG_INNER,	/* inner call: made by the allocator */
	AG_FROM_SIGNAL, /* made by a signal handler that interrupted the hook: a separate event */
	AG_FRESH,	/* the earlier hook was left by longjmp: not nested */
};
enum ag_nesting ag_stack_nesting(const struct ag_call *call);

/* stack.c: a hook returns; removes its frame if it is listed as left (struct ss_account). */
void ag_stack_frame_returned(const struct ag_call *call);

/* Every page of the main thread's stack from @sp to its end is mapped. */
static inline bool ag_on_main_stack(const struct ss_control *c, uint64_t sp)
{
	return sp >= c->main_stack_low && sp < c->main_stack_high;
}

/* readable.c: Return: an address at or above the end of the memory of the stack that contains
 * @sp. */
uint64_t ag_stack_limit(const struct ss_control *c, const struct ag_thread *t, uint64_t sp);

#endif
