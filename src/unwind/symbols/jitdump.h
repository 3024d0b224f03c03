/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Jitdump files, jit-PID.dump: a record for each piece of code that a program generates or moves, and
 * the lines that it comes from (Linux, tools/perf/Documentation/jitdump-specification.txt).
 */
#ifndef UNWIND_SYMBOLS_JITDUMP_H
#define UNWIND_SYMBOLS_JITDUMP_H

#include <stdint.h>
#include "lib/check.h"
#include "unwind/symbols/jit_names.h"

/**
 * jitdump_read() - name addresses by a jitdump
 * @fd: a regular file, which the program can be changing
 * @since: number of bytes that the file had when the recording began.  Records after these bytes count
 * as written during the recording (struct jit_code, late).  Their timestamps are not used, because
 * the clock is not always known.  So a record that the program had buffered when the recording began
 * counts as written during it.
 * @r: filled
 *
 * A record that is not valid is skipped, and one that does not say where the next one is ends the
 * file.  At most 4,194,304 records are read.
 *
 * Return: 0; -EPROTO: not a jitdump of this machine; or another negative errno: what was read before
 * the error is named.
 */
__must_check int jitdump_read(int fd, uint64_t since, struct jit_names *names, struct jit_read *r);

#endif
