/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/printable.h"

int complain(const struct mp_err *err)
{
	fprintf(stderr, "memprof: %s\n", err->what[0] ? printable(err->what) : "failed");
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
}

void tell_restored(uint32_t n)
{
	if (n)
		printf("restored %u process%s forked from it\n", n,
		       n == 1 ? " that was" : "es that were");
}

int usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("memprof: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" (see: memprof COMMAND --help)\n", stderr);
	return MP_EXIT_USAGE;
}

int option_error(const char *command, int opt, char *const *argv)
{
	const char *last = argv[optind - 1];

	if (opt == ':')
		return usage_error("%s: option '%s' needs a value", command, last);
	if (optopt && strncmp(last, "--", 2) != 0)
		return usage_error("%s: unknown option '-%c'", command, optopt);
	return usage_error("%s: unknown option '%.100s'", command, last);
}

int unexpected_argument(const char *command, const char *arg)
{
	pid_t pid;

	return usage_error("%s: unexpected argument '%s'%s%s", command, arg,
			   parse_pid(arg, &pid) ? "; a process is named by -p " : "",
			   parse_pid(arg, &pid) ? arg : "");
}

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

bool parse_cost(const char *text, enum cost *cost)
{
	static const char *const name[] = {"live",   "allocated", "count",  "peak", "temporary",
					   "mapped", "faulted",	  "faults", "major"};

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if (!strcmp(text, name[i])) {
			*cost = (enum cost)i;
			return true;
		}
	}
	return false;
}

static void write_steps(const char *text, size_t n)
{
	fwrite(text, 1, n, stderr);
	fflush(stderr);
}

struct steps *debug_steps(void)
{
	const char *on = getenv("MEMPROF_DEBUG");

	return on && *on ? steps_new(write_steps) : NULL;
}
