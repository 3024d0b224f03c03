/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks that were found in a process, and where a recording of it says that they came from. */
#ifndef REPORT_ORIGINS_H
#define REPORT_ORIGINS_H

#include "report/model.h"

enum origin_state {
	ORIGIN_UNKNOWN, /* not live in the recording then, or of another size */
	ORIGIN_KNOWN,
	ORIGIN_FREED, /* known, and freed after that moment */
};

struct origin {
	uint64_t addr, usable; /* asked for: bytes that the allocator gave */
	uint64_t size;	       /* found: bytes requested */
	uint64_t time_ns;
	uint32_t stack, tid;
	enum origin_state state;
	bool older; /* allocated before the recording: another recorder handed it over */
};

/**
 * origins_find() - what was live at a moment
 * @list: by address; the results are filled in
 * @at_ns: the moment, in the recording's time
 *
 * Reads the recording once more, up to its end.  Return: 0, or a negative errno with @err filled.
 */
int origins_find(const struct model *m, struct origin *list, size_t n, uint64_t at_ns,
		 struct mp_err *err);

/* All sums of @m become those of the known origins; the others are without a stack.  For the
 * writers of what is live: they weigh by COST_LEAKED. */
void origins_weigh(struct model *m, const struct origin *list, size_t n);

#endif
