/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reading the memory of a process while it runs, and in a short stop only what was written since.
 *
 *	precopy_begin()		target stopped; a moment only
 *	precopy_gather()	target running: reads everything, then in rounds what was written
 *	precopy_take()		target stopped: reads the rest, and the image is of this moment
 *	(both again for another moment)
 *	precopy_settle()	target running: nothing of it is left in the target
 *	precopy_free()
 *
 * Whatever the process does with its mappings in between is told by the kernel's categories in the
 * last stop: only a page that is tracked and was not written since it was read is taken as read.
 */
#ifndef LEAKS_PRECOPY_H
#define LEAKS_PRECOPY_H

#include "attach/track.h"
#include "leaks/frozen.h"

struct precopy {
	struct track track;
	struct frozen frozen;
	int mem; /* /proc/PID/mem, -1: none */
	pid_t pid;
	struct track_run *runs;
	uint32_t rounds;		       /* so far */
	uint64_t scan_ns, read_ns, read_bytes; /* of the last round; processor time */
	uint64_t rate_bytes, rate_ns;	       /* so much was read so fast, whenever it was most */
	uint64_t left; /* bytes that the stop is going to read, as far as known */
};

/* Return: 0, or a negative errno with @err and nothing to be ended. */
int precopy_begin(struct precopy *p, struct target *t, struct mp_err *err);
/**
 * precopy_gather() - read, until little is left or no less gets left
 * Return: 0, or a negative errno with @err: -ENOMEM: memprof has no room for it; -EINTR:
 * hand_wanted().
 */
int precopy_gather(struct precopy *p, struct mp_err *err);
/* Return: nanoseconds that precopy_take() is going to need, by what was measured. */
uint64_t precopy_expect(const struct precopy *p);
/* @img: open, of the stopped target; frozen on return without error.  Return: 0, -ETIME at the
 * @deadline, or another negative errno; with @err. */
int precopy_take(struct precopy *p, struct image *img, const struct deadline *deadline,
		 struct mp_err *err);
/* Are its last bytes still to be had: does the process exist, with the same memory? */
bool precopy_holds(const struct precopy *p);
void precopy_settle(struct precopy *p);
void precopy_free(struct precopy *p);

/* Bytes that memprof may take without pressing anybody: of the machine, and of its own cgroup. */
uint64_t precopy_room(void);

#endif
