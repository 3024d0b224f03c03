/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shows a line on the terminal while something takes longer than a second. */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* shown before the bar, for example "reading" */
	uint64_t start_ns, last_ns;
	double done;
	bool terminal, shown;
};

void progress_begin(struct progress *p, const char *what);
/* Updates the line.  @ctx: the struct progress; @done: from 0 to 1. */
void progress_tell(void *ctx, double done);
/* Clears the line. */
void progress_end(struct progress *p);

#endif
