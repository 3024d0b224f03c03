/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work that passes through a row of stages, which work at the same time on different slots of a ring. */
#ifndef LIB_STAGES_H
#define LIB_STAGES_H

#include <stdbool.h>

#define MAX_STAGES 4u

struct stages {
	unsigned int n;	    /* stages, at most MAX_STAGES */
	unsigned int slots; /* of the ring */
	/* Does the work of @stage on @slot.  Return: false if no slot follows for this stage; it then must
	 * be false for all stages after it, too, at this slot or before. */
	bool (*work)(void *arg, unsigned int stage, unsigned int slot);
	void *arg;
};

/**
 * stages_run() - call @work for stage 0, then 1, and so on, of the slots 0, 1, 2, ..., 0, 1 ...
 *
 * Each stage sees the slots in this order, each slot after the stage before it, and by one thread: that of
 * the last stage is the caller's.  The others handle no signals.  If this process may use only one
 * processor, or no thread can be made, the caller's thread does all.  When a stage ends before those
 * before it, they end, too, after at most as many slots as the ring has.  Returns when the last stage has
 * ended.
 */
void stages_run(const struct stages *s);

#endif
