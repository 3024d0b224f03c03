/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parses an unsigned number; *@rest is what follows it. */
static bool parse_number(const char *text, double *n, const char **rest)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*n = strtod(text, &end);
	*rest = end;
	return !errno;
}

bool parse_duration(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		double ms;
	} unit[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	const char *rest;
	double n;

	if (!parse_number(text, &n, &rest))
		return false;
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		if (!strcmp(rest, unit[i].unit) && n * unit[i].ms < 1e15) {
			*ms = (uint64_t)(n * unit[i].ms);
			return true;
		}
	}
	return false;
}

bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const char suffix[] = "kmg";
	const char *rest, *s;
	double n;

	if (!parse_number(text, &n, &rest))
		return false;
	if (*rest) {
		s = strchr(suffix, *rest | 0x20);
		if (!s || rest[1])
			return false;
		n *= (double)(1024ull << 10 * (s - suffix));
	}
	if (n >= 1e18)
		return false;
	*bytes = (uint64_t)n;
	return true;
}

bool parse_part(const char *text, uint32_t *ppm)
{
	const char *rest;
	double n;

	if (!parse_number(text, &n, &rest) || (*rest && strcmp(rest, "%")) || n > 100)
		return false;
	*ppm = (uint32_t)lround(n * 10000);
	return true;
}

bool parse_count(const char *text, uint32_t *count)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text) || n > UINT32_MAX)
		return false;
	*count = (uint32_t)n;
	return true;
}

bool parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || end == text || n <= 0 || n > 0x7fffffff)
		return false;
	*pid = (pid_t)n;
	return true;
}
