/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes an image of a running process: predicts the pause, takes the image, and afterwards leaves
 * the process as it was.
 *
 * plan.c chooses how: from a copy of the process (attach/copy.h), by reading it while it runs
 * (precopy.h, frozen.h), or while it is stopped.  What is read is an image (image.h), which can
 * also be a core file.  hand.h, guardian.h and reap.h: if memprof is interrupted or killed.
 */
#ifndef SNAPSHOT_SNAPSHOT_H
#define SNAPSHOT_SNAPSHOT_H

#include "attach/copy.h"
#include "attach/proc/runqueue.h"
#include "attach/target.h"
#include "snapshot/guardian.h"
#include "snapshot/image.h"
#include "snapshot/precopy.h"
#include "snapshot/signal_stacks.h"

enum snapshot_mode {
	SNAPSHOT_ANY, /* only as a request: a copy or a pre-copy, whichever fits */
	SNAPSHOT_COPY,
	SNAPSHOT_PRE_COPY, /* read while it runs, then stopped to read what was written since */
	SNAPSHOT_GENTLE,   /* copied with one thread stopped, the others run; not one moment */
	SNAPSHOT_IN_PLACE, /* it stays stopped until everything is read */
};
/* "copy", "pre-copy", "gentle", "in-place". */
const char *snapshot_mode_name(enum snapshot_mode mode);

/* What is known before the process is touched.  Bytes and nanoseconds. */
struct snapshot_plan {
	uint64_t rss, small, huge; /* small, huge: anonymous memory in small and in huge pages */
	uint64_t tables;	   /* page tables that a copy needs */
	uint64_t pause_ns;	   /* predicted for an idle machine */
	uint64_t pause_most_ns;	   /* predicted with the current load of the processors */
	struct runqueue_load load;
	uint64_t copy_pause_ns; /* predicted for a copy, whatever the mode */
	uint64_t room;		/* left in its memory cgroups; UINT64_MAX: no limit */
	uint64_t memory;	/* that memprof needs to store it (pre-copy) */
	uint64_t max_pause_ns;	/* allowed; 0: no limit */
	uint32_t mappings;
	enum snapshot_mode mode;
	bool automatic; /* pre-copy was not requested: a copy replaces it if that is faster */
};

struct snapshot {
	struct target *t;
	struct copy copy; /* modes copy and gentle */
	struct guardian guardian;
	struct precopy pre; /* mode pre-copy */
	struct maps before; /* the target's maps, to find what a copy lacks */
	struct image image;
	struct snapshot_plan plan; /* .mode: the mode that was used in the end */
	uint64_t taken_ns;	   /* CLOCK_MONOTONIC while all threads were stopped */
	uint64_t pause_ns;	   /* from the first interrupt until all threads run again */
	uint64_t wait_ns;	   /* longest wait of a thread for a processor in it */
	uint64_t other_pause_ns;   /* the other, short stop: before a pre-copy, after a copy */
	struct runqueue_delays delays;
};

/**
 * snapshot_plan() - predict the costs; reads /proc/PID/smaps_rollup and maps, touches nothing
 * @t: from target_look()
 * @mode: SNAPSHOT_ANY: a copy, or a pre-copy if a copy would take longer than @max_pause_ms (0:
 * than 100 ms) or does not fit into the memory cgroup
 * Refuses a copy that would do harm: for users of userfaultfd (fork() waits for their handler), and
 * in memory cgroups without room.  Refuses a pre-copy on kernels before 6.7, or if memprof lacks
 * memory.
 * Return: 0, or a negative errno with @err.
 */
int snapshot_plan(struct snapshot_plan *plan, struct target *t, enum snapshot_mode mode,
		  uint64_t max_pause_ms, struct mp_err *err);
/* Suggests an option for a pause of @ns, which @plan does not allow: "--max-pause 70ms". */
void snapshot_advice(const struct snapshot_plan *plan, const struct target *t, uint64_t ns,
		     char *text, size_t size);

/**
 * snapshot_take() - stop @t and copy it (or keep it stopped, if the plan says in place)
 * @max_ms: all threads must be stopped within this time, or nothing happens
 * On success @s->image is readable, the target runs unless in place, and snapshot_end() must be
 * called.
 * If a pause is going to be longer than @plan->max_pause_ns, the target is let go at once, with two
 * exceptions.  The kernel does not interrupt the making of a copy, so check @s->pause_ns.  In
 * place, SIGALRM is sent when the time is over; another thread should wait for it
 * (snapshot/hand.h). Return: 0; -ETIME: the pause would exceed the limit (for a pre-copy:
 * @max_ms); or another -errno; with @err.
 */
int snapshot_take(struct snapshot *s, struct target *t, const struct snapshot_plan *plan,
		  uint64_t max_ms, struct mp_err *err);

/* Replaces the image by one of another moment.  What a pre-copy has read and was not written since
 * is not read again.  Return: as snapshot_take(); on error nothing is left. */
int snapshot_again(struct snapshot *s, uint64_t max_ms, struct mp_err *err);

/* Call when no other moment will be needed: a pre-copy removes its tracking from the target. */
void snapshot_settle(struct snapshot *s);

/* Asks the threads of the snapshot for their signal stacks.  @found, return: as signal_stacks_ask(). */
int snapshot_ask(struct snapshot *s, struct signal_stacks *found);

/* Call when the memory is not needed any more: kills the copy and makes the target reap it if it is
 * its child, or lets the stopped target go.  Return: 0; -ESRCH: the target ended in between; or
 * -errno with @err (MP_EXIT_NO_PROCESS: it ended before all memory that has no copy was read). */
int snapshot_end(struct snapshot *s, struct mp_err *err);

#endif
