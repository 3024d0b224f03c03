/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What there is to tell about a recording when it has ended. */
#ifndef CONTROL_SUMMARY_H
#define CONTROL_SUMMARY_H

#include <stdbool.h>
#include "inject/session.h"
#include "record/recorder.h"
#include "unwind/symbols/debuginfod.h"
#include "unwind/symbols/symbols.h"

/* Everything is borrowed from the recording. */
struct summary {
	const struct session *session;
	struct recorder *recorder; /* after recorder_stop() */
	struct symbols *symbols;   /* NULL: none */
	const struct mp_losses *losses;
	const struct mp_finish *finish;
	const struct debuginfod *servers; /* that were asked; NULL: none */
	const char *path;
	const char *executable, *called; /* as in struct mp_info */
	bool page_faults;
	bool verbose; /* print all sums, not only a screen */
	bool sent;    /* @path is not a file of this machine */
};

/* Does the program have a heap of its own: does it map memory itself and hardly call malloc()?
 * False for a sample, whose numbers are too small to tell. */
bool summary_own_heap(const struct session *s, const struct recorder_progress *p);

#endif
