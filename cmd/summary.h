/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof attach and run print when a recording is over. */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include "inject/session.h"
#include "record/recorder.h"
#include "unwind/symbols.h"

struct summary {
	const struct session *session;
	struct recorder *recorder; /* stopped */
	struct symbols *symbols;   /* NULL: none */
	const struct mp_losses *losses;
	const struct mp_finish *finish;
	const char *path;
	bool page_faults;
};

/* Does the program map its memory itself, with a heap of its own, and hardly call malloc()?  False
 * for a sample, whose numbers are too small to tell. */
bool summary_own_heap(const struct session *s, const struct recorder_progress *p);
/* On standard output. */
void summary_print(const struct summary *s);
/* A hooked function goes by the name it was hooked as, not by one of its aliases; one of C++ by its
 * symbol, which is demangled.  Return: that name, or NULL. */
const char *summary_hooked_as(const struct session *s, uint64_t pc);

#endif
