/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary that memprof attach and run print at the end of a recording. */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include "inject/session.h"
#include "record/recorder.h"
#include "unwind/symbols.h"

struct summary {
	const struct session *session;
	struct recorder *recorder; /* after recorder_stop() */
	struct symbols *symbols;   /* NULL: none */
	const struct mp_losses *losses;
	const struct mp_finish *finish;
	const char *path;
	bool page_faults;
};

/* Does the program have a heap of its own: does it map memory itself and hardly call malloc()?
 * False for a sample, whose numbers are too small to tell. */
bool summary_own_heap(const struct session *s, const struct recorder_progress *p);
/* Prints the summary on stdout. */
void summary_print(const struct summary *s);
/* The name under which the function at @pc was hooked, rather than one of its aliases.  Return: the
 * name; NULL if @pc is not a hooked function, or is a C++ function, whose symbol is to be
 * demangled. */
const char *summary_hooked_as(const struct session *s, uint64_t pc);

#endif
