/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Complaints about the command line, and errors. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/parse.h"
#include "lib/printable.h"
#include "attach/steps.h"

int complain(const struct mp_err *err)
{
	fprintf(stderr, "memprof: %s\n", err->what[0] ? printable(err->what) : "failed");
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
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
