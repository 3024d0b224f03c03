/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Complaints about the command line, and errors. */
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/nearest.h"
#include "cmd/options/parse.h"
#include "lib/printable.h"
#include "attach/steps.h"

int complain(const struct mp_err *err)
{
	fprintf(stderr, "memprof: %s\n", err->what[0] ? printable(err->what) : "failed");
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
}

int usage_error(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = (int)strspn(text, "abcdefghijklmnopqrstuvwxyz-");
	n = text[0] != '-' && text[n] == ':' ? n : 0;
	fprintf(stderr, "memprof: %s (see: memprof %.*s%s--help)\n", printable(text), n, text,
		n ? " " : "");
	return MP_EXIT_USAGE;
}

const char *option_name(const struct option *options, int opt)
{
	for (; options->name; options++) {
		if (options->val == opt)
			return options->name;
	}
	return "";
}

/* Finds the option that the first @n bytes of @text, without hyphens, abbreviate.  Return: their
 * number; @found: the first two. */
static int abbreviated(const struct option *options, const char *text, size_t n,
		       const struct option *found[2])
{
	int matches = 0;

	for (const struct option *o = options; o->name; o++) {
		if (strncmp(o->name, text, n) != 0)
			continue;
		if (!o->name[n]) {
			found[0] = o;
			return 1;
		}
		if (matches < 2)
			found[matches] = o;
		matches++;
	}
	return matches;
}

static int bad_long_option(const char *command, const char *arg, const struct option *options)
{
	const struct option *found[2];
	size_t n = strcspn(arg + 2, "=");
	struct nearest s = nearest_to(arg + 2, n);
	int matches = n ? abbreviated(options, arg + 2, n, found) : 0;

	if (matches == 1)
		return usage_error("%s: option '--%s' takes no value", command, found[0]->name);
	if (matches)
		return usage_error("%s: option '%.100s' could be --%s or --%s", command, arg,
				   found[0]->name, found[1]->name);
	for (; options->name; options++)
		nearest_offer(&s, options->name);
	return usage_error("%s: unknown option '%.100s'%s%s%s", command, arg,
			   s.best ? "; did you mean --" : "", s.best ? s.best : "",
			   s.best ? "?" : "");
}

int option_error(const char *command, int opt, char *const *argv, const struct option *options)
{
	const char *last = argv[optind - 1];
	bool is_long = !strncmp(last, "--", 2);

	if (opt == ':' && is_long)
		return usage_error("%s: option '%s' needs a value", command, last);
	if (opt == ':')
		return usage_error("%s: option '-%c' needs a value", command, optopt);
	/* In the middle of a group of short options @last is the argument before it. */
	if (optopt && !(is_long && strchr(last, '=')))
		return usage_error("%s: unknown option '-%c'", command, optopt);
	return bad_long_option(command, last, options);
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
