/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/filter/amount.h"

#include <stddef.h>
#include <string.h>
#include "lib/wide.h"

#define UNIX_MS_LEAST 100000000000ull /* 1973 in ms; in seconds it would be 3170 years */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses digits at *@at, which is advanced. */
static bool digits(const char **at, uint64_t *n)
{
	const char *p = *at;
	uint64_t v = 0;

	if (!is_digit(*p))
		return false;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	}
	*at = p;
	*n = v;
	return true;
}

/* A number such as "12" or "12.5". */
struct decimal {
	uint64_t whole, fraction; /* fraction: in billionths */
};

static bool decimal(const char **at, struct decimal *d)
{
	uint64_t unit = 100000000;
	const char *p = *at;

	if (!digits(&p, &d->whole))
		return false;
	d->fraction = 0;
	if (*p == '.') {
		if (!is_digit(*++p))
			return false;
		for (; is_digit(*p); p++, unit /= 10)
			d->fraction += unit * (uint64_t)(*p - '0');
	}
	*at = p;
	return true;
}

static bool scaled(const struct decimal *d, uint64_t unit, uint64_t *n)
{
	uint64_t whole, part = wide_mul_div(d->fraction, unit, 1000000000u);

	if (__builtin_mul_overflow(d->whole, unit, &whole))
		return false;
	return !__builtin_add_overflow(whole, part, n);
}

static bool hexadecimal(const char *p, uint64_t *n)
{
	uint64_t v = 0;

	if (!*p || strlen(p) > 16)
		return false;
	for (; *p; p++) {
		char c = (char)(*p | 0x20);
		int digit = is_digit(*p) ? *p - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (digit < 0)
			return false;
		v = v << 4 | (uint64_t)digit;
	}
	*n = v;
	return true;
}

bool amount_integer(const char *text, uint64_t *n)
{
	uint64_t v;

	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		return hexadecimal(text + 2, n);
	if (!digits(&text, &v) || *text)
		return false;
	*n = v;
	return true;
}

bool amount_bytes(const char *text, uint64_t *bytes)
{
	static const char suffix[] = "kmgt";
	uint64_t unit = 1;
	struct decimal d;
	const char *s;

	if (!decimal(&text, &d))
		return false;
	s = *text ? strchr(suffix, *text | 0x20) : NULL;
	if (s) {
		unit = 1024ull << 10 * (s - suffix);
		text++;
		if (*text == 'i' && text[1] == 'B')
			text++;
	}
	if (*text == 'B')
		text++;
	if (*text || (unit == 1 && d.fraction))
		return false;
	return scaled(&d, unit, bytes);
}

static uint64_t time_unit(const char **at)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = {{"ms", 1000000},	   {"us", 1000},	 {"ns", 1},
		    {"d", 86400000000000}, {"h", 3600000000000}, {"m", 60000000000},
		    {"s", 1000000000}};

	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		size_t n = strlen(unit[i].name);

		if (!strncmp(*at, unit[i].name, n)) {
			*at += n;
			return unit[i].ns;
		}
	}
	return 0;
}

bool amount_duration(const char *text, uint64_t *ns)
{
	uint64_t sum = 0, part, unit;
	struct decimal d;

	do {
		if (!decimal(&text, &d))
			return false;
		unit = *text ? time_unit(&text) : 1000000000;
		if (!unit || !scaled(&d, unit, &part) || __builtin_add_overflow(sum, part, &sum))
			return false;
	} while (*text);
	*ns = sum;
	return true;
}

static bool percentage(const char *text, struct amount *a)
{
	struct decimal d;

	if (!decimal(&text, &d) || strcmp(text, "%") != 0 || d.whole > 1000000)
		return false;
	*a = (struct amount){.unit = AMOUNT_PERCENT,
			     .percent = (double)d.whole + (double)d.fraction / 1e9};
	return true;
}

static struct amount plain(uint64_t n)
{
	return (struct amount){.unit = AMOUNT_PLAIN, .n = n};
}

bool amount_duration_or_percent(const char *text, struct amount *a)
{
	uint64_t n;

	if (percentage(text, a))
		return true;
	if (!amount_duration(text, &n))
		return false;
	*a = plain(n);
	return true;
}

bool amount_time(const char *text, struct amount *a)
{
	const char *end = text;
	uint64_t n;

	if (digits(&end, &n) && !*end && n >= UNIX_MS_LEAST) {
		*a = (struct amount){.unit = AMOUNT_UNIX_MS, .n = n};
		return true;
	}
	return amount_duration_or_percent(text, a);
}

bool amount_count_or_percent(const char *text, struct amount *a)
{
	const char *end = text;
	uint64_t n;

	if (percentage(text, a))
		return true;
	if (!digits(&end, &n) || *end)
		return false;
	*a = plain(n);
	return true;
}

uint64_t amount_ns(const struct amount *a, uint64_t start_unix_ns, uint64_t runtime_ns, bool upper,
		   uint64_t otherwise)
{
	uint64_t ns;

	switch (a->unit) {
	case AMOUNT_PLAIN:
		return a->n;
	case AMOUNT_PERCENT:
		return (uint64_t)((double)runtime_ns * a->percent / 100);
	case AMOUNT_UNIX_MS:
		if (__builtin_mul_overflow(a->n, 1000000u, &ns) ||
		    __builtin_add_overflow(ns, upper ? 999999u : 0u, &ns))
			return UINT64_MAX;
		return ns < start_unix_ns ? 0 : ns - start_unix_ns;
	default:
		return otherwise;
	}
}
