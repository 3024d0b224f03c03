/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_LAYOUT_H
#define INJECT_LAYOUT_H

#include "attach/target.h"
#include "formats/session.h"
#include "lib/check.h"

struct layout {
	struct ss_control control; /* offsets and sizes, the rest zero */
	uint64_t length;	   /* of the block */
	bool prefault;		   /* all of it is to be touched by us first, not by the target */
};

/* A session without regard to limits. @threads: the process has now; @ring: as below. */
void layout_default(size_t threads, uint64_t ring, struct layout *out);

/**
 * layout_choose() - how large a session the process can bear
 * @ring: bytes a thread that were asked for, 0: as is best
 *
 * Reads RLIMIT_AS and the memory cgroups; touches nothing.
 * Return: 0, or a negative errno with @err: which limit leaves too little (MP_EXIT_NO_ROOM).
 */
__must_check int layout_choose(const struct target *t, uint64_t ring, struct layout *out,
			       struct mp_err *err);

/* Are all offsets what this memprof makes of the sizes?  For a layout that the target could have
 * written: @length is the real one. */
bool layout_is_sound(const struct ss_control *c, uint64_t length);

#endif
