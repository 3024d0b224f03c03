/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses numbers in filters; doc/filters.md has the grammar. */
#ifndef MODEL_FILTER_AMOUNT_H
#define MODEL_FILTER_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum amount_unit { AMOUNT_NONE, AMOUNT_PLAIN, AMOUNT_PERCENT, AMOUNT_UNIX_MS };

/* A parsed number, before the length of the recording is known. */
struct amount {
	enum amount_unit unit;
	uint64_t n;	/* AMOUNT_PLAIN: ns or a count; AMOUNT_UNIX_MS: ms since 1970 */
	double percent; /* AMOUNT_PERCENT */
};

/* The functions below return false, and leave the result unchanged, if @text cannot be parsed. */

/* Parses decimal digits, or 0x and hexadecimal ones. */
bool amount_integer(const char *text, uint64_t *n);
/* Parses a decimal number with an optional suffix k, M, G or T (powers of 1024; "B" or "iB" can
 * follow). */
bool amount_bytes(const char *text, uint64_t *bytes);
/* Parses one or more numbers with units d h m s ms us ns; a last number without unit is seconds. */
bool amount_duration(const char *text, uint64_t *ns);
/* Parses a duration, or a percentage of the runtime. */
bool amount_duration_or_percent(const char *text, struct amount *a);
/* As amount_duration_or_percent(), but digits alone from 100000000000 on are Unix time in ms. */
bool amount_time(const char *text, struct amount *a);
/* Parses a count, or a percentage. */
bool amount_count_or_percent(const char *text, struct amount *a);

/**
 * amount_ns() - convert a time or duration to ns since the start
 * @start_unix_ns, @runtime_ns: of the recording
 * @upper: it is an upper bound: then a Unix millisecond includes all its nanoseconds
 * @otherwise: the result for AMOUNT_NONE
 */
uint64_t amount_ns(const struct amount *a, uint64_t start_unix_ns, uint64_t runtime_ns, bool upper,
		   uint64_t otherwise);

#endif
