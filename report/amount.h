/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers as people write them in filters: doc/filters.md has the grammar. */
#ifndef REPORT_AMOUNT_H
#define REPORT_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum amount_unit { AMOUNT_NONE, AMOUNT_PLAIN, AMOUNT_PERCENT, AMOUNT_UNIX_MS };

/* What was written, before it is known how long the recording is. */
struct amount {
	enum amount_unit unit;
	uint64_t n;	/* AMOUNT_PLAIN: ns or a count; AMOUNT_UNIX_MS: ms since 1970 */
	double percent; /* AMOUNT_PERCENT */
};

/* Each returns false, with the result untouched, when @text is not of its kind. */

/* Decimal digits, or 0x and hexadecimal ones. */
bool amount_integer(const char *text, uint64_t *n);
/* Decimal, with an optional suffix k, M, G or T (powers of 1024; a "B" or "iB" may follow). */
bool amount_bytes(const char *text, uint64_t *bytes);
/* One or more numbers with units d h m s ms us ns; a last number without one is seconds. */
bool amount_duration(const char *text, uint64_t *ns);
/* A duration, or a percentage of the runtime. */
bool amount_duration_or_percent(const char *text, struct amount *a);
/* The same, or digits only from 100000000000 on: Unix time in milliseconds. */
bool amount_time(const char *text, struct amount *a);
/* A count, or a percentage. */
bool amount_count_or_percent(const char *text, struct amount *a);

/**
 * amount_ns() - a time or duration in ns since the start
 * @start_unix_ns, @runtime_ns: of the recording
 * @upper: an upper bound: a Unix millisecond lasts until its end
 * @otherwise: the result for AMOUNT_NONE
 */
uint64_t amount_ns(const struct amount *a, uint64_t start_unix_ns, uint64_t runtime_ns, bool upper,
		   uint64_t otherwise);

#endif
