/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof: heap profiler for processes that are already running. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/shrunk.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} command[] = {
    {"attach", cmd_attach, "record a running process; leave it as it was"},
    {"detach", cmd_detach, "end a recording; repair a process whose recorder died"},
    {"flush", cmd_flush, "write everything recorded so far to the file"},
    {"mark", cmd_mark, "put a named mark into a recording"},
    {"pause", cmd_pause, "stop recording new allocations"},
    {"resume", cmd_resume, "continue recording after a pause"},
    {"status", cmd_status, "list the processes that have a session"},
    {"run", cmd_run, "start a program and record it from its first instruction"},
    {"leaks", cmd_leaks, "find blocks of a running process that nothing points to any more"},
    {"heap", cmd_heap, "list what is live in a running process, and what its memory consists of"},
    {"report", cmd_report, "print a recording: text, JSON, flame graph, tree, folded stacks"},
    {"diff", cmd_diff, "print what grew between two recordings, or two moments of one"},
    {"info", cmd_info, "print what was recorded and what the recording contains"},
    {"verify", cmd_verify, "check that a recording is complete and undamaged"},
    {"strip", cmd_strip, "make a smaller recording: short-lived blocks become sums"},
    {"merge", cmd_merge, "join the pieces of a recording, or the recordings of several processes"},
    {"extract", cmd_extract,
     "write modules, maps, symbols and the like of a recording as CSV files"},
    {"symbolize", cmd_symbolize, "make a copy with symbols, or with names removed"},
};
#define NCOMMANDS (sizeof(command) / sizeof(command[0]))

static void print_help(FILE *out)
{
	fputs("memprof: where the memory of a running process goes, and what it leaks\n"
	      "usage: memprof COMMAND [options]; memprof COMMAND --help lists them\n\n",
	      out);
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(out, "  %-9s %s\n", command[i].name, command[i].help);
	fputs("\n  memprof --debug COMMAND: what each step does to the process, on stderr\n"
	      "\n  memprof attach -p PID -o rec.memprof --for 30s\n"
	      "  memprof report rec.memprof --leaks --flamegraph leaks.svg\n",
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

int main(int argc, char **argv)
{
	hold_standard_files();
	/* Debug files are searched for on this machine only. */
	unsetenv("DEBUGINFOD_URLS");
	survive_shrunk_files();
	opterr = 0;
	if (argc < 2) {
		print_help(stderr);
		return MP_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return MP_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("memprof %s\n", MEMPROF_VERSION);
		return MP_EXIT_OK;
	}
	if (!strcmp(argv[1], "--debug") && argc > 2) {
		setenv("MEMPROF_DEBUG", "1", 1);
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (!strcmp(argv[1], command[i].name))
			return command[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "memprof: unknown command '%s'; memprof --help lists them\n", argv[1]);
	return MP_EXIT_USAGE;
}
