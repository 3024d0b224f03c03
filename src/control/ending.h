/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends a recording: removes the hooks, writes the symbols, reports the summary. */
#ifndef CONTROL_ENDING_H
#define CONTROL_ENDING_H

#include <stdbool.h>
#include "control/state.h"
#include "formats/file.h"

/* Removes the hooks if @reason requires it, and completes the recording.  @path: the recording.
 * @failed: the recording never began, and no file is left.  Return: an enum mp_exit; errors were
 * reported. */
int recording_end(struct recording *rec, const struct recording_options *o,
		  enum mp_end_reason reason, const char *path, bool failed);

#endif
