/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Getting an image of a running process: what the pause will be, the pause itself, and afterwards
 * a process as if nothing had been.
 */
#ifndef LEAKS_SNAPSHOT_H
#define LEAKS_SNAPSHOT_H

#include "attach/copy.h"
#include "attach/target.h"
#include "leaks/guardian.h"
#include "leaks/image.h"

/* What is known before anything is touched.  Bytes and nanoseconds. */
struct snapshot_plan {
	uint64_t rss, small, huge; /* anonymous memory in small and in huge pages */
	uint64_t tables;	   /* page tables a copy needs */
	uint64_t pause_ns;	   /* predicted; right within a factor of two */
	uint64_t room;		   /* what its memory cgroups still admit; UINT64_MAX: no limit */
	bool in_place;
	bool gentle; /* set by the caller: one thread stands, the others run on; not one moment */
};

struct snapshot {
	struct target *t;
	struct copy copy; /* none in place */
	struct guardian guardian;
	struct maps before; /* of the target, for what a copy does not get */
	struct image image;
	struct snapshot_plan plan;
	uint64_t taken_ns;	/* CLOCK_MONOTONIC, while all stood */
	uint64_t pause_ns;	/* measured: first interrupt to all running again */
	uint64_t reap_pause_ns; /* the second, short stop */
};

/**
 * snapshot_plan() - predict; reads /proc/PID/smaps_rollup, touches nothing
 * Refuses what a copy would harm: users of userfaultfd (fork() waits for their handler), memory
 * cgroups without room.
 * @t: from target_look()
 */
int snapshot_plan(struct snapshot_plan *plan, struct target *t, bool in_place, struct mp_err *err);

/**
 * snapshot_take() - stop @t, copy it (or keep it stopped, if the plan says in place)
 * @max_ms: the threads must stand within this time, or nothing happens
 * On return without error @s->image is readable, and the target runs unless in place.  Ends with
 * snapshot_end() in every case of success.
 */
int snapshot_take(struct snapshot *s, struct target *t, const struct snapshot_plan *plan,
		  uint64_t max_ms, struct mp_err *err);

/* The memory is not needed any more: kills the copy and has the target reap it, or lets the
 * stopped target go.  Return: 0, -ESRCH: the target ended meanwhile, or -errno with @err. */
int snapshot_end(struct snapshot *s, struct mp_err *err);

/**
 * snapshot_clear() - have the target reap what a killed memprof has left of its copies
 * @anyway: stop the target also if there are none: until one that is in the making is there
 * @n: set to how many there were
 * Return: 0 or a negative errno with @err; @t is released.
 */
int snapshot_clear(struct target *t, bool anyway, uint32_t *n, struct mp_err *err);

#endif
