/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The main loop of a recording. */
#ifndef CONTROL_WATCH_H
#define CONTROL_WATCH_H

#include <stdbool.h>
#include "control/state.h"
#include "formats/file.h"

/* Waits for the end of the recording.  Every second, reports the progress, and hooks libraries that
 * were loaded since.  @orders: as recording_orders.begin() returned it.  Return: why the recording ended. */
enum mp_end_reason recording_watch(struct recording *rec, const struct recording_options *o,
				   int orders);

/* Reads the target's mappings again, and sets install_wanted if new ones are to be hooked.  Return:
 * false if they cannot be read. */
bool recording_refresh(struct recording *rec);

bool recording_target_alive(const struct recording *rec);

#endif
