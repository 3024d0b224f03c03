/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The session block: one memfd, mapped shared in the target and in the recorder.  All of the
 * agent's configuration is in it.  Everything needed to undo the session is in its journal before
 * the first byte of text is patched.  Freestanding: included by agent/.
 *
 * Offsets are bytes from the start of the block unless a name ends in _addr (address in the
 * target).  The target can write anything here: the recorder copies a value once and checks the
 * copy.
 */
#ifndef FORMATS_SESSION_H
#define FORMATS_SESSION_H

#include <stdint.h>
#include "formats/record.h"

#define SS_MAGIC   0x31636f7270656d6full /* "omperoc1" */
#define SS_VERSION 9u
/* Name of the memfd, by which status and detach find a session */
#define SS_NAME "memprof-session"

#define SS_MAX_HOOKS   192  /* hooks that are inserted at the same time */
#define SS_MAX_NAMES   1024 /* functions that were ever hooked */
#define SS_MAX_ISLANDS 16
#define SS_MAX_INSNS   8  /* relocated instructions of one prologue */
#define SS_WINDOW      24 /* maximum bytes that a patch replaces */

/* State of a session, journal.state.  Only the recorder (or a later detach) changes it. */
enum ss_state {
	SS_OPENING = 0,	 /* being mapped: any part of it can be missing */
	SS_PREPARED = 1, /* mapped, nothing patched */
	SS_PATCHING = 2, /* some windows can be patched */
	SS_LIVE = 3,
	SS_RESTORING = 4,
	/* Text restored; pages stay because a thread can still be executing in them */
	SS_DORMANT = 5,
};

/* Kind of a hook; selects the agent's entry point. */
enum ss_hook_kind {
	SS_HOOK_ALLOC = 1,	/* returns the block */
	SS_HOOK_POSIX_MEMALIGN, /* stores the block through its first argument, returns 0 */
	SS_HOOK_ALLOC_THROW,	/* operator new that throws: calls its nothrow sibling */
	SS_HOOK_FREE,		/* block is argument 0; tail jump */
	SS_HOOK_REALLOC,	/* old block argument 0 */
	SS_HOOK_XALLOCX,	/* jemalloc: resize in place, returns the real size */
	SS_HOOK_FREE_THROUGH,	/* a free that can call another one: called, not jumped to */
	SS_HOOK_MMAP,
	SS_HOOK_MUNMAP,
	SS_HOOK_MREMAP,
	SS_HOOK_SHMAT,
	SS_HOOK_SHMDT,
	SS_HOOK_MALLOPT,
	SS_HOOK_PRCTL,
};

/* How the requested size is computed from the arguments. */
enum ss_size_kind {
	SS_SIZE_ARG0 = 0,
	SS_SIZE_ARG1,
	SS_SIZE_ARG2,
	SS_SIZE_ARG0_X_ARG1, /* calloc */
	SS_SIZE_ARG1_X_ARG2, /* reallocarray */
};

/*
 * Hook descriptor.  It is read-only in an island; its address is in a register when the agent is
 * entered. agent-entry.S uses these offsets.
 */
struct ss_desc {
	uint64_t original_addr; /* 0: relocated prologue: call it to run the real function */
	uint64_t function_addr; /* 8: the hooked function */
	uint64_t sibling_addr;	/* 16: ALLOC_THROW: nothrow variant, relocated if hooked */
	uint16_t hook;		/* 24: index of its name in the journal */
	uint8_t kind;		/* 26: enum ss_hook_kind */
	uint8_t size_kind;	/* 27: enum ss_size_kind */
	uint8_t glibc_chunks; /* 28: blocks carry glibc chunk headers (slack and arena are read) */
	uint8_t reserved[3];
	/* 32, 40: frees called from this code are the allocator's own */
	uint64_t own_code, own_code_length;
	uint64_t gate_addr; /* 48: struct ss_gate */
};

/* Name of a hook; records contain its index.  A function that is hooked again after its library was
 * unloaded and loaded keeps the index. */
struct ss_hook_name {
	char name[40];	 /* symbol, e.g. malloc */
	char module[64]; /* basename of its file */
	uint32_t kind;	 /* enum ss_hook_kind */
};

/* A patched function.  After its module is unloaded, the entry can be reused for another
 * function. */
struct ss_journal_hook {
	uint64_t addr;		 /* first patched byte */
	uint64_t function_end;	 /* end of the symbol */
	uint32_t kind;		 /* enum ss_hook_kind */
	uint32_t name;		 /* index of its struct ss_hook_name */
	uint64_t slot_addr;	 /* island slot: entry, descriptor, relocated code */
	uint64_t relocated_addr; /* first relocated instruction */
	/* The file mapping that contains it, to identify it at detach */
	uint64_t map_start, map_offset, ino;
	uint32_t dev_major, dev_minor;
	uint8_t length; /* patched bytes */
	uint8_t insns;
	uint8_t old_off[SS_MAX_INSNS]; /* instruction i: original offset ... */
	uint8_t new_off[SS_MAX_INSNS]; /* ... and offset in the relocated copy */
	uint8_t old_bytes[SS_WINDOW];
	uint8_t new_bytes[SS_WINDOW];
	uint8_t page_was_clean;	  /* page was file-backed and unmodified before */
	uint8_t relocated_length; /* bytes of the relocated copy, including its jump back */
	uint8_t patched;	  /* 1: new_bytes can be in the text */
};

struct ss_journal {
	uint32_t state; /* enum ss_state */
	uint32_t nhooks;
	int32_t recorder_pid; /* in the recorder's pid namespace */
	uint32_t nislands;
	uint64_t recorder_start; /* its start time, /proc/PID/stat field 22, to detect pid reuse */
	uint64_t started_at;	 /* Unix seconds */
	uint64_t agent_addr, agent_length; /* text, followed by the gate */
	uint64_t gate_addr;
	uint64_t session_addr, session_length;
	struct {
		uint64_t addr, length;
	} island[SS_MAX_ISLANDS];
	char recording[256]; /* path of the recording */
	char control[40];    /* name of the recorder's control socket; record/control.h */
	uint32_t nnames;
	struct ss_journal_hook hook[SS_MAX_HOOKS];
	struct ss_hook_name name[SS_MAX_NAMES]; /* only grows */
};

/*
 * The gate: private anonymous pages after the agent's text, MADV_WIPEONFORK.  A forked child sees
 * zeros, so every hook passes through.  The first page is struct ss_gate; agent-entry.S depends on
 * the layout of the others:
 *
 *	filter	u8[SS_FILTER], how many blocks of the set (ss_control.sampled) have this hash of
 *		their address (255: that or more, for ever); zero: the block is not in the set
 *	locals	struct ss_local[SS_LOCALS], by a hash of the thread pointer
 *
 * After these, in the same private mapping but not wiped on fork, are the accounts:
 *
 *	accounts struct ss_account[ss_control.nslots], one for each thread's slot
 */
struct ss_gate {
	uint32_t on;
	uint32_t account_mask; /* number of accounts - 1 */
	uint64_t session_addr;
	uint32_t unaccounted; /* 1: a thread that has no slot, and so no account, entered a hook */
	uint32_t reserved;
};
#define SS_FILTER     65536
#define SS_LOCALS     512
#define SS_LOCAL_HASH 0x61c88647 /* 2^31 / golden ratio^2, odd: fits an immediate */
#define SS_GATE_PAGE  4096
#define SS_GATE_BYTES (SS_GATE_PAGE + SS_FILTER + SS_LOCALS * 64)

/* State of a thread that is stored near the agent's text. */
struct ss_local {
	/* Sampling: the countdown of the thread. */
	uint64_t tp;	 /* thread pointer; with SS_LOCAL_BUSY while the thread is in a hook */
	int64_t left;	 /* bytes until its next sample; negative: past that point */
	uint64_t random; /* state of the random generator; 0: not started */
	/* Thread slot of the last thread that used this entry.  The slot's own thread pointer
	 * identifies the thread. */
	uint64_t slot_addr;
	/* With a budget (ss_control.overhead_ppm): what @left was set to, the level that it was drawn
	 * for, and the point's fraction of a byte, AG_POINT_BITS bits */
	int64_t drawn;
	uint32_t level, fraction;
	uint64_t reserved[2];
};
#define SS_LOCAL_BUSY	1ull
#define SS_MAX_INTERVAL (1ull << 40)

#define SS_LEFT_FRAMES 4

/*
 * Whether a thread is inside the agent.  The agent has a frame on a thread's stack only while depth
 * is not zero, except during the first and last instructions of an entry.  A thread that executes
 * those has its pc, or the pc saved in a signal frame, in the agent's text.  This memory is
 * private, so a forked child has a copy that is consistent with its copy of the stack.
 */
struct ss_account {
	uint64_t tp;	   /* thread pointer of the slot's thread; 0: not used yet */
	uint32_t tid;	   /* its thread id, 0: not known */
	uint32_t depth;	   /* number of hooks that this thread is inside */
	uint64_t outer_sp; /* stack pointer at the entry of the outermost hook */
	/* outer_sp of hooks that were left without returning and whose frames can be in use again,
	 * such as those of a suspended coroutine. 0: none. */
	uint64_t left[SS_LEFT_FRAMES];
	/* Number of such hooks so far; if more than SS_LEFT_FRAMES, some are not listed */
	uint32_t nleft;
	uint32_t reserved;
};

/* Return: address of the accounts in the target. */
static inline uint64_t ss_accounts_addr(const struct ss_journal *j)
{
	return j->gate_addr + SS_GATE_BYTES;
}

/* A thread claims the first free slot (and account) of SS_PROBES slots from this index on.  @tp:
 * thread pointer; @mask: number of slots - 1. */
static inline uint32_t ss_first_slot(uint64_t tp, uint32_t mask)
{
	return (uint32_t)((tp >> 6) * 0x9e3779b97f4a7c15ull >> 40) & mask;
}
#define SS_PROBES 64

/* A stack in the arena: header word, followed by n addresses, innermost first. */
struct ss_stack {
	uint32_t n;
	uint32_t flags; /* enum ss_stack_flags */
	/* Return addresses; with SS_PC_EXACT: address of the interrupted instruction */
	uint64_t pc[];
};
#define SS_PC_EXACT (1ull << 63)

/* Return: the address in the instruction that @pc of a stack means: for a return address, that of the
 * call before it. */
static inline uint64_t ss_pc_instruction(uint64_t pc)
{
	return pc & SS_PC_EXACT ? pc & ~SS_PC_EXACT : pc - 1;
}

enum ss_stack_flags {
	SS_STACK_COMPLETE = 1,	 /* reached the outermost frame */
	SS_STACK_NO_TABLE = 2,	 /* ended at code that has no unwind information */
	SS_STACK_BAD_FRAME = 4,	 /* ended at a frame that is not valid */
	SS_STACK_TOO_DEEP = 8,	 /* more than SS_MAX_FRAMES */
	SS_STACK_TRUNCATED = 16, /* recorder: not enough stack bytes were copied */
	SS_STACK_CUT = 32,	 /* recorder: outer frames were left out as requested */
	SS_STACK_BY_FP = 64,	 /* some callers were found by frame pointers, not by tables */
};

#define SS_MAX_FRAMES 1024

/* A mapped text range with its unwind table. */
struct ss_module {
	uint64_t start, end; /* addresses in the target */
	uint64_t pcs;	     /* offset of u32 pc[n], ascending, relative to start */
	uint64_t rules;	     /* offset of u16 rule[n]; rule ids of unwind/rule.h */
	uint32_t n;	     /* 0: known to have no unwind information */
	uint32_t flags;	     /* SS_MODULE_* */
};
#define SS_MODULE_AGENT 1u /* agent text or island: left out of stacks */

struct ss_module_list {
	uint32_t generation;
	uint32_t n;
	struct ss_module at[]; /* ascending by start, disjoint */
};
#define SS_LISTS_OFFSET (256u << 10) /* of the module lists, in the block */
#define SS_MAX_MODULES	4096
#define SS_MODULE_LISTS 4 /* rotating buffers */

/* Hash table of interned stacks: hash of all addresses -> id. key 0: free. */
struct ss_intern {
	uint64_t key;
	uint32_t stack; /* 0: being written */
	uint32_t reserved;
};

#define SS_OPEN_WORDS (MPR_RECENT / 8 / 64)

/*
 * Thread slot.  This struct and the ring are shared with the recorder; the rest of the slot (walk
 * cache, scratch) is used by the agent only.  The ring is a struct perf_event_mmap_page and 2^n
 * data pages.
 */
struct ss_thread {
	uint64_t tp; /* thread pointer; 0: free slot, claimed by compare-and-swap */
	uint32_t tid;
	uint32_t account;   /* index of its struct ss_account */
	uint64_t tail_seen; /* tail of the ring when it was last read */
	/* Records written; a realloc counts twice (begin and end) */
	uint64_t written[MPR_LOST_KINDS];
	uint64_t lost[MPR_LOST_KINDS];
	uint64_t lost_bytes;	/* requested bytes of lost allocations */
	uint64_t stacks_cached; /* walks that used the verified cache */
	uint32_t raw_sequence;
	uint32_t reserved2;
	uint64_t stale[MPR_LOST_KINDS]; /* calls not recorded because the deadline had passed */
	uint64_t resets;		/* hooks left by longjmp or cancellation */
	/* Allocations that were thinned out, and their requested bytes */
	uint64_t thinned_out, thinned_bytes;
	/* With a budget: entries of the agent's C code, and ticks spent in one of SS_TIMED_CALLS of
	 * them, without the original functions: in calls that record nothing, and in others */
	uint64_t calls, spent[2];
	/* Written by the recorder: position up to which it has read the ring (the ring's tail is at
	 * least MPR_RECENT behind), and which of the records in the last MPR_RECENT bytes before it
	 * were allocations of blocks that had not ended: bit position / 8 % MPR_RECENT. */
	uint64_t read_to;
	uint64_t open[SS_OPEN_WORDS];
};

/* ss_control.detach_requested: the recorder ends, the session stays for the next recorder. */
#define SS_DETACH_KEEP 2u

/* Levels of sampling within a budget: 0, and from SS_LEVEL_MIN to SS_LEVEL_MAX. */
#define SS_LEVEL_MIN   6u
#define SS_LEVEL_FIRST 16u /* in the first second */
#define SS_LEVEL_MAX   23u
#define SS_TIMED_CALLS 16u

#define SS_MAY_CALL 1u /* all but process_vm_readv */
#define SS_MAY_COPY 2u /* process_vm_readv too; only with SS_MAY_CALL */
#define SS_MAY_ALL  (SS_MAY_CALL | SS_MAY_COPY)

/* First page of the block. */
struct ss_control {
	uint64_t magic;
	uint32_t version;
	uint32_t arch; /* ELF e_machine */

	/* Read on every event. */
	uint64_t deadline; /* ticks: after it the recorder counts as dead and hooks pass through */
	uint32_t generation; /* of the unwind tables: a change invalidates the walk caches */
	uint32_t lossless;   /* 1: wait for room (until the deadline) instead of dropping */
	/* Thinning (agent/thin.h) is considered when a ring holds thin_from bytes: 0 while the
	 * recorder is behind, and for ever once a block was thinned out; else ring_thin;
	 * UINT64_MAX: never. */
	uint64_t thin_from, ring_thin;
	/* Set by the recorder: how much to thin; ticks of a window in which the allocations of a
	 * kind are counted. */
	uint64_t thin_window;
	uint32_t pressure;
	uint32_t ring_shift; /* the pressure of a ring grows by 1 with every 2^ring_shift bytes */
	/* Written by the agent: 1: blocks were thinned out, so that every end is looked up. */
	uint32_t thinned_out;
	/* Offset from the thread pointer to the tid in the thread control block, or, if
	 * !tid_known, to that block. */
	int32_t tid_offset;
	uint32_t tid_known; /* 1: tid_offset was verified */
	/* SS_MAY_*: system calls that the agent is permitted to make (no seccomp filter refuses
	 * them).  Agent and recorder clear it for good when the program is about to install a
	 * filter. */
	uint32_t may_syscall;
	uint32_t nslots;			/* power of two */
	uint64_t slots, slot_stride, slot_ring; /* ring: offset inside a slot */
	uint64_t ring_size;			/* data bytes, power of two */
	/* Mask: when the ring's head changes in one of these bits, the agent wakes a sleeping
	 * reader */
	uint64_t ring_wake;
	/* Part of ring_size that allocations can use.  The rest is reserved for frees, since a lost
	 * free would be a false leak. */
	uint64_t ring_alloc;
	uint64_t module_list;		    /* offset of the current ss_module_list */
	uint64_t rules, full_rules;	    /* struct uw_rule[], struct uw_full[] */
	uint64_t rule_cache;		    /* u64[rule_cache_size] */
	uint64_t interns, arena;	    /* struct ss_intern[], u64[] */
	uint32_t rule_cache_size, ninterns; /* powers of two */
	uint64_t arena_words;
	uint64_t rows, rows_end; /* area for the modules' unwind tables */
	uint64_t rows_used;	 /* end of the used part, for the next recorder */
	uint32_t rules_used, reserved_rules;
	uint64_t sample_interval; /* bytes; 0: every allocation is recorded */
	/* A budget (record/budget/budget.h), in millionths of the target's CPU time; 0: none.  Then the
	 * recorder changes the level all the time: allocations are sampled at an interval of 2^level
	 * bytes on average; 0: every allocation is recorded. */
	uint32_t overhead_ppm, sample_level;
	/* With a budget: at most so many ticks count for one call (the thread may have been
	 * preempted) ... */
	uint64_t spent_max;
	/* ... and -ln(1 - 2^-k), 32 fraction bits: the part of the interval in which a point is found
	 * with probability 2^-k.  Index k. */
	uint32_t part[SS_LEVEL_MAX + 2];
	uint32_t reserved_part;
	/* u64[nsampled]: addresses of sampled live blocks, or of those thinned out; 0:
	 * free */
	uint64_t sampled;
	uint64_t nsampled;			  /* power of two */
	uint64_t main_stack_low, main_stack_high; /* the [stack] mapping at attach */
	/* Address of the vDSO's clock_gettime(), for architectures whose agent needs it; 0:
	 * none. */
	uint64_t clock_addr;

	/* Written by the agent, rarely. */
	/* Words allocated; word 0 is never used */
	uint64_t arena_used __attribute__((aligned(64)));
	/* Number of claims: the recorder searches the slots only when it changes */
	uint64_t slots_claimed;
	uint64_t stacks_full;	    /* stacks that did not fit in interns or arena */
	uint64_t lost_no_slot;	    /* events of threads that got no slot ... */
	uint64_t lost_no_slot_free; /* ... and the frees and reallocs among them */
	uint64_t stacks_checked;    /* checking build: walks compared with a complete one ... */
	uint64_t stacks_differ;	    /* ... and found different */
	/* Calls of operator new whose first attempt failed: these are not recorded */
	uint64_t missed_new;
	/* Unmappings seen: a change makes the agent check cached stack bounds again */
	uint64_t unmaps;

	/* Futex word to wake the reader; 1 while it sleeps. */
	uint32_t reader_sleeps __attribute__((aligned(64)));

	/* Requests from other memprof processes to the recorder. */
	uint32_t detach_requested __attribute__((aligned(64))); /* 1, or SS_DETACH_KEEP */
	/* Counters that the recorder publishes for memprof status. */
	uint64_t seen_events, seen_live_blocks, seen_live_bytes, seen_lost, seen_thinned;
	uint64_t seen_cost_ppm; /* of the target's CPU time, in the last seconds */
	struct {
		uint64_t ceiling, bytes, peak_bytes;
		uint64_t dropped_batches, dropped_events, dropped_bytes;
	} queue;

	uint64_t journal;	   /* offset of struct ss_journal */
	uint32_t recorder_stalled; /* 1: the recording's disk is stalled; for memprof detach */
	/* As the counters; where a block of memprof before November 2026 has zeros */
	uint32_t seen_pieces_deleted, seen_live_only;
};

#endif
