/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers as the table shows them: short, and with "~" before those that are estimates and not 0. */
#ifndef TOP_CELL_H
#define TOP_CELL_H

#include <stdbool.h>
#include <stdint.h>

#define CELL 48 /* bytes of a buffer */

/* All format into @buf and return it.  @width: columns that the number should have at most: it
 * loses digits if it has more. */
const char *cell_bytes(uint64_t bytes, bool estimated, uint32_t width, char buf[CELL]);
/* With its sign. */
const char *cell_change(double bytes, bool estimated, uint32_t width, char buf[CELL]);
const char *cell_count(uint64_t n, bool estimated, uint32_t width, char buf[CELL]);
/* A number a second. */
const char *cell_rate(double rate, bool estimated, uint32_t width, char buf[CELL]);
/* @share: from 0 to 1; negative: unknown. */
const char *cell_share(double share, char buf[CELL]);
/* Hours, minutes and seconds. */
const char *cell_time(uint64_t ns, char buf[CELL]);

#endif
