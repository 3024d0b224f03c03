/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Perf maps: /tmp/perf-PID.map, to which a program appends a line "START SIZE NAME" for each piece of
 * code that it generates (Linux, tools/perf/Documentation/jit-interface.txt).
 */
#ifndef UNWIND_SYMBOLS_PERF_MAP_H
#define UNWIND_SYMBOLS_PERF_MAP_H

#include <stdint.h>
#include "lib/check.h"
#include "unwind/symbols/jit_names.h"

/**
 * perf_map_read() - name addresses by a perf map
 * @fd: a regular file, which the program can be changing
 * @since: number of bytes that the file had when the recording began
 * @r: filled
 *
 * A line that is not valid is skipped, and counted.  The last one is not used if it has no newline: the
 * program has not written it to its end.  At most 512 MiB are read.
 *
 * Return: 0, or a negative errno: what was read before the error is named.
 */
__must_check int perf_map_read(int fd, uint64_t since, struct jit_names *names, struct jit_read *r);

#endif
