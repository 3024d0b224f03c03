/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof: heap profiler for processes that are already running. */
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/complete.h"
#include "cmd/options/nearest.h"
#include "cmd/heap/shrunk.h"
#include "export/text/terminal.h"
#include "lib/debuginfod_urls.h"

static void print_help(FILE *out)
{
	fputs("memprof: where the memory of a running process goes, and what it leaks\n"
	      "usage: memprof COMMAND [options]; memprof help COMMAND lists them\n\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  %-9s %s\n", c->name, c->help);
	fputs("\n  memprof --version: which release this is\n"
	      "  memprof --debug COMMAND: what each step does to the process, on stderr\n"
	      "  memprof COMMAND --color=always|never|auto: colours in text; auto: on a terminal,\n"
	      "    if NO_COLOR is not set\n"
	      "\n  memprof attach -p PID -o rec.memprof --for 30s\n"
	      "  memprof report rec.memprof --not-freed --flamegraph leaks.svg\n",
	      out);
}

/* If a standard descriptor is closed, the next file opened would get its number, and that is the
 * recording.  Opens /dev/null in the wrong mode instead: reads and writes still fail, and a program
 * that memprof starts finds the descriptor closed. */
static void hold_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	}
}

/* Return: the exit status. */
static int unknown_command(const char *name)
{
	struct nearest s = nearest_to(name, strlen(name));

	for (const struct command *c = commands; c->name; c++)
		nearest_offer(&s, c->name);
	return usage_error("unknown %s '%.100s'%s%s%s", *name == '-' ? "option" : "command", name,
			   s.best ? "; did you mean " : "", s.best ? s.best : "",
			   s.best ? "?" : "");
}

static int run_command(int argc, char **argv)
{
	for (const struct command *c = commands; c->name; c++) {
		if (!strcmp(argv[0], c->name))
			return c->run(argc, argv);
	}
	if (!strcmp(argv[0], COMPLETE))
		return complete(argc - 1, argv + 1);
	return unknown_command(argv[0]);
}

static int version(void)
{
	printf("memprof %s\n", MEMPROF_VERSION);
	return MP_EXIT_OK;
}

/* @argv: after "help", ended by NULL. */
static int help(char **argv)
{
	char *of_command[] = {argv[0], (char[]){"--help"}, NULL};

	if (argv[0] && argv[1])
		return usage_error("help: unexpected argument '%.100s'", argv[1]);
	if (argv[0] && strcmp(argv[0], "help") != 0 && strcmp(argv[0], "version") != 0)
		return run_command(2, of_command);
	print_help(stdout);
	return MP_EXIT_OK;
}

static bool is_one_of(const char *arg, const char *a, const char *b, const char *c)
{
	return !strcmp(arg, a) || !strcmp(arg, b) || !strcmp(arg, c);
}

/* Takes --color=WHEN out of the arguments of memprof: for "run", those before the command.  Return:
 * false after it printed an error. */
static bool take_colour(int *argc, char **argv)
{
	static const char *const name[] = {"auto", "always", "never"};
	static const char option[] = "--color";
	int when = TERM_AUTO, n = 1, at = 1;
	const char *command = NULL;

	for (; at < *argc && strcmp(argv[at], "--") != 0; at++) {
		const char *value = argv[at] + strlen(option);

		command = command || *argv[at] == '-' ? command : argv[at];
		if (command && is_one_of(command, "run", COMPLETE, COMPLETE))
			break;
		if (strncmp(argv[at], option, strlen(option)) != 0 || (*value && *value != '=')) {
			argv[n++] = argv[at];
			continue;
		}
		for (when = TERM_NEVER; when >= 0; when--) {
			if (*value && !strcmp(value + 1, name[when]))
				break;
		}
		if (when < 0) {
			usage_error("--color: '%.100s' is not always, never or auto; write "
				    "--color=never",
				    *value ? value + 1 : "");
			return false;
		}
	}
	while (at < *argc)
		argv[n++] = argv[at++];
	argv[n] = NULL;
	*argc = n;
	term_colours((enum term_when)when);
	return true;
}

int main(int argc, char **argv)
{
	hold_standard_files();
	debuginfod_urls_take();
	survive_shrunk_files();
	opterr = 0;
	if (!take_colour(&argc, argv))
		return MP_EXIT_USAGE;
	if (argc > 1 && !strcmp(argv[1], "--debug")) {
		setenv("MEMPROF_DEBUG", "1", 1);
		argc--;
		argv++;
	}
	if (argc < 2) {
		print_help(stderr);
		return MP_EXIT_USAGE;
	}
	if (is_one_of(argv[1], "help", "--help", "-h"))
		return help(argv + 2);
	if (is_one_of(argv[1], "version", "--version", "-V"))
		return version();
	return run_command(argc - 1, argv + 1);
}
