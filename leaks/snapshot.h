/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Getting an image of a running process: what the pause will be, the pause itself, and afterwards
 * a process as if nothing had been.
 */
#ifndef LEAKS_SNAPSHOT_H
#define LEAKS_SNAPSHOT_H

#include "attach/copy.h"
#include "attach/runqueue.h"
#include "attach/target.h"
#include "leaks/guardian.h"
#include "leaks/image.h"
#include "leaks/precopy.h"

enum snapshot_mode {
	SNAPSHOT_ANY, /* only asked for: copy or pre-copy, whichever does */
	SNAPSHOT_COPY,
	SNAPSHOT_PRE_COPY, /* read while it runs; stopped for what was written meanwhile */
	SNAPSHOT_GENTLE,   /* copied with one thread stopped, the others run on; not one moment */
	SNAPSHOT_IN_PLACE, /* it stays stopped until everything was read */
};
/* "copy", "pre-copy", "gentle", "in-place". */
const char *snapshot_mode_name(enum snapshot_mode mode);

/* What is known before anything is touched.  Bytes and nanoseconds. */
struct snapshot_plan {
	uint64_t rss, small, huge; /* anonymous memory in small and in huge pages */
	uint64_t tables;	   /* page tables a copy needs */
	uint64_t pause_ns;	   /* predicted, for an idle machine */
	uint64_t pause_most_ns;	   /* the same with all that waits for a processor now */
	struct runqueue_load load;
	uint64_t copy_pause_ns; /* of a copy, whatever the mode */
	uint64_t room;		/* what its memory cgroups still admit; UINT64_MAX: no limit */
	uint64_t memory;	/* what memprof takes to read it into (pre-copy) */
	uint64_t max_pause_ns;	/* what is allowed; 0: any */
	uint32_t mappings;
	enum snapshot_mode mode;
	bool automatic; /* pre-copy was not asked for: given up for a copy that would be shorter */
};

struct snapshot {
	struct target *t;
	struct copy copy; /* of modes copy and gentle */
	struct guardian guardian;
	struct precopy pre; /* of mode pre-copy */
	struct maps before; /* of the target, for what a copy does not get */
	struct image image;
	struct snapshot_plan plan; /* .mode is what became of it */
	uint64_t taken_ns;	   /* CLOCK_MONOTONIC, while all stood */
	uint64_t pause_ns;	   /* measured: first interrupt to all running again */
	uint64_t wait_ns;	   /* the longest that one thread waited for a processor in it */
	uint64_t other_pause_ns;   /* the other, short stop: before a pre-copy, after a copy */
	struct runqueue_delays delays;
};

/**
 * snapshot_plan() - predict; reads /proc/PID/smaps_rollup and maps, touches nothing
 * Refuses what a copy would harm: users of userfaultfd (fork() waits for their handler), memory
 * cgroups without room; a pre-copy on kernels before 6.7, or where memprof would have no room.
 * @t: from target_look()
 * @mode: SNAPSHOT_ANY: a copy, or a pre-copy when a copy would take longer than @max_pause_ms
 *	(0: than 100 ms) or finds no room in the memory cgroup
 */
int snapshot_plan(struct snapshot_plan *plan, struct target *t, enum snapshot_mode mode,
		  uint64_t max_pause_ms, struct mp_err *err);
/* What would do when a pause takes @ns, which @plan does not allow: "--max-pause 70ms". */
void snapshot_advice(const struct snapshot_plan *plan, const struct target *t, uint64_t ns,
		     char *text, size_t size);

/**
 * snapshot_take() - stop @t, copy it (or keep it stopped, if the plan says in place)
 * @max_ms: the threads must stand within this time, or nothing happens
 * On return without error @s->image is readable, and the target runs unless in place.  Ends with
 * snapshot_end() in every case of success.
 * When a pause is going to be longer than @plan->max_pause_ns the target is let go at once, but for
 * two cases: the kernel does not break off the making of a copy, so @s->pause_ns tells; and in
 * place SIGALRM comes when so much time is over, which another thread should wait for
 * (leaks/hand.h). Return: 0; -ETIME: the pause would exceed what is allowed (@max_ms: of a
 * pre-copy); or another -errno; with @err.
 */
int snapshot_take(struct snapshot *s, struct target *t, const struct snapshot_plan *plan,
		  uint64_t max_ms, struct mp_err *err);

/* Another moment instead: its image is gone, a new one is there.  What was read in a pre-copy and
 * not written since is not read again.  Return: as snapshot_take(); on error nothing is left. */
int snapshot_again(struct snapshot *s, uint64_t max_ms, struct mp_err *err);

/* No other moment will be asked for: a pre-copy leaves the target. */
void snapshot_settle(struct snapshot *s);

/* The memory is not needed any more: kills the copy and has the target reap one that is its child,
 * or lets the stopped target go.  Return: 0, -ESRCH: the target ended meanwhile, or -errno with
 * @err (MP_EXIT_NO_PROCESS: it ended, and not all was read that there is no copy of). */
int snapshot_end(struct snapshot *s, struct mp_err *err);

/**
 * snapshot_clear() - have the target reap what a killed memprof has left of its copies
 * @anyway: stop the target also if there are none: until one that is in the making is there
 * @n: set to how many there were
 * Return: 0 or a negative errno with @err; @t is released.
 */
int snapshot_clear(struct target *t, bool anyway, uint32_t *n, struct mp_err *err);

#endif
