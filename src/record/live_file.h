/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file of a recording that keeps only the live heap (--live-only).  It is written when it is
 * asked for and at the end, as a complete recording that takes the place of the one before; until
 * then all that the aggregator writes is dropped.
 */
#ifndef RECORD_LIVE_FILE_H
#define RECORD_LIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

struct aggregator;
struct recorder_config;

/* Can the recording be written?  Return: 0, or a negative errno with @err. */
int live_file_check(const struct recorder_config *config, struct mp_err *err);
/* Creates the file and writes the live blocks; from now on the aggregator writes there.  Return: 0 or
 * a negative errno. */
int live_file_begin(struct aggregator *a);
/* Writes the live heap as it is now, at @now_ns.  Called by the aggregator; the thread of the pieces
 * completes the file, and piece_thread_closed() is its result. */
void live_file_write(struct aggregator *a, uint64_t now_ns);

#endif
