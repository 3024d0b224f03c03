/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the memory of a process while it runs, so that a short stop needs to read only what was
 * written since.
 *
 * - precopy_begin(): target stopped, for a moment only
 *
 * - precopy_gather(): target running; reads everything, then in rounds what was written
 *
 * - precopy_take(): target stopped; reads the rest, and the image is of this moment
 *
 * - both again for another moment
 *
 * - precopy_settle(): target running; removes everything from the target
 *
 * - precopy_free()
 *
 * The process may change its mappings in between.  The kernel's page categories in the last stop
 * account for that: only a page that is tracked and was not written since it was read is not read
 * again.
 */
#ifndef SNAPSHOT_PRECOPY_H
#define SNAPSHOT_PRECOPY_H

#include "attach/track.h"
#include "snapshot/frozen.h"

struct precopy {
	struct track track;
	struct frozen frozen;
	int mem; /* /proc/PID/mem; -1: not open */
	pid_t pid;
	struct track_run *runs;
	uint32_t rounds;		       /* so far */
	uint64_t scan_ns, read_ns, read_bytes; /* of the last round; times of the processor */
	uint64_t rate_bytes, rate_ns;	       /* of the round that read the most */
	uint64_t left; /* bytes that the stop must still read, as far as known */
};

/* Starts tracking.  Return: 0, or a negative errno with @err and nothing to end. */
int precopy_begin(struct precopy *p, struct target *t, struct mp_err *err);
/**
 * precopy_gather() - read until little is left, or what is left does not shrink
 * Return: 0, or a negative errno with @err: -ENOMEM: not enough memory for memprof; -EINTR:
 * hand_wanted().
 */
int precopy_gather(struct precopy *p, struct mp_err *err);
/* Return: nanoseconds that precopy_take() is expected to need, according to the measured rounds. */
uint64_t precopy_expect(const struct precopy *p);
/* Reads the rest.  @img: open, of the stopped target; frozen after success.  Return: 0, -ETIME at
 * the @deadline, or another negative errno; with @err. */
int precopy_take(struct precopy *p, struct image *img, const struct deadline *deadline,
		 struct mp_err *err);
/* Can the remaining bytes still be read: does the process exist, with the same memory? */
bool precopy_holds(const struct precopy *p);
void precopy_settle(struct precopy *p);
void precopy_free(struct precopy *p);

/* Bytes that memprof can use without pressure on other processes: of the machine, and of memprof's
 * cgroup. */
uint64_t precopy_room(void);

#endif
