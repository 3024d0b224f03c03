/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers and sizes as people read them. */
#ifndef LIB_HUMAN_H
#define LIB_HUMAN_H

#include <stdint.h>

/* Formats bytes as "1.5 MiB" into @buf of at least 24 bytes.  Return: @buf. */
const char *human_bytes(uint64_t bytes, char *buf);
/* Formats 1234567 as "1,234,567" into @buf of at least 32 bytes.  Return: @buf. */
const char *human_number(uint64_t n, char *buf);
/* The plural ending of a noun after the number @n. */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Formats bytes as "1.5 MiB", in one of a few static buffers: use at most 8 in one printf. */
const char *human(uint64_t bytes);
/* Formats 1234567 as "1,234,567", with the same limit as human(). */
const char *thousands(uint64_t n);
/* Formats "1 block" or "1,234 blocks", with the same limit as human().  @noun: in the singular, and
 * at most 30 bytes long. */
const char *counted(uint64_t n, const char *noun);
/* Formats millionths as "0.83 %", with the same limit as human().  UINT32_MAX: "over 100000 %". */
const char *human_part(uint32_t ppm);

#endif
