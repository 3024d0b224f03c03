/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/complete.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attach/proc/procfs.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/options/help_text.h"
#include "cmd/options/parse.h"
#include "lib/printable.h"

/* The words that an option takes; the messages that refuse other words list the same. */
static const struct {
	const char *option, *words;
} choices[] = {
    {"--via", "agent kernel"},
    {"--event", "allocations page-faults"},
    {"--view", "allocations groups libraries threads sizes timeline maps faults"},
    {"--order", "asc dsc"},
    {"--only", "growing plateau burst sawtooth"},
    {"--group-by", "line function library class stack"},
    {"--by", "line function library thread stack"},
    {"--sort", "live blocks growth since-mark allocations allocated temporary name"},
    {"--cost", "live allocated count peak temporary mapped faulted faults major"},
    {"--anonymize", "none partial full"},
    {"--lifetime", "all only_leaked only_chain_leaked only_temporary only_whole_group_leaked "
		   "only_not_deallocated_in_current_range only_deallocated_in_current_range "
		   "bytehound_only_temporary bytehound_only_whole_group_leaked"},
    {"--allocator", "main_arena other_arena mmapped jemalloc tcmalloc mimalloc other"},
    {"--mmaped", "yes no"},
    {"--arena", "main non_main"},
    {"--jemalloc", "yes no"},
};

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void offer_commands(const char *start)
{
	for (const struct command *c = commands; c->name; c++) {
		if (begins(c->name, start))
			printf("%s\t%s\n", c->name, c->help);
	}
}

/* Offers ids of processes, with their names, or only the names. */
static void offer_processes(const char *start, bool names)
{
	DIR *d = opendir("/proc");
	struct proc_status st;
	struct dirent *e;
	pid_t pid;

	while (d && (e = readdir(d))) {
		if (!parse_pid(e->d_name, &pid) || proc_status_read(pid, 0, &st) || st.no_memory ||
		    st.state == 'Z')
			continue;
		if (!names && begins(e->d_name, start))
			printf("%d\t%s\n", pid, printable(st.name));
		/* The shells would split names with blanks. */
		if (names && begins(st.name, start) && !strpbrk(st.name, " \t\n"))
			printf("%s\n", printable(st.name));
	}
	if (d)
		closedir(d);
}

static void offer_words(const char *words, const char *start)
{
	char copy[400], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
		if (begins(w, start))
			puts(w);
	}
}

struct query {
	const char *start;  /* of the word to complete */
	const char *option; /* whose value it can be */
	char value[40];	    /* placeholder of @option's value */
};

static void offer_option(void *ctx, const struct help_option *o)
{
	const struct query *q = ctx;

	if (begins(o->name, "--") && begins(o->name, q->start))
		printf("%s\t%.*s\n", o->name, (int)strcspn(o->text, "\n"), o->text);
}

static void find_value(void *ctx, const struct help_option *o)
{
	struct query *q = ctx;

	if (!strcmp(o->name, q->option))
		snprintf(q->value, sizeof(q->value), "%s", o->value);
}

static void offer_value(const struct query *q)
{
	bool name = !strcmp(q->option, "-n") || !strcmp(q->option, "--name");

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (!strcmp(choices[i].option, q->option)) {
			offer_words(choices[i].words, q->start);
			return;
		}
	}
	if (!strcmp(q->value, "PID") || name)
		offer_processes(q->start, name);
	else if (!strcmp(q->option, "--recording"))
		puts(":recordings");
	else if (!strcmp(q->value, "DIR"))
		puts(":dirs");
	else if (!strcmp(q->value, "FILE") || !strcmp(q->value, "SVG") ||
		 !strcmp(q->value, "[OUT]"))
		puts(":files");
}

/* What a word that is no option can be follows from the first line of the help.  Return: false if
 * the command takes none. */
static bool offer_argument(const char *help)
{
	char usage[300];

	snprintf(usage, sizeof(usage), "%.*s", (int)strcspn(help, "\n"), help);
	if (strstr(usage, "PROGRAM"))
		puts(":commands");
	else if (strstr(usage, "RECORDING") || strstr(usage, " FILE [options]") ||
		 strstr(usage, "BEFORE"))
		puts(":recordings");
	else
		return false;
	return true;
}

/* memprof heap diff takes files.  Return: whether the word is one of them. */
static bool offer_diff(char **words, int n, const char *start)
{
	const bool file = n && !strcmp(words[0], "diff") && *start != '-';

	if (file)
		puts(":files");
	else if (!n && begins("diff", start))
		puts("diff\tcompare looks that --save wrote");
	return file;
}

/* @words: the @n words between the command and the one to complete. */
static void complete_command(const struct command *c, char **words, int n, const char *start)
{
	struct query q = {.start = start, .option = n ? words[n - 1] : ""};
	char *help = help_text_of(c);

	if (!help)
		return;
	/* bash makes words of --option=value: the option, the sign, the value. */
	if (!strcmp(q.option, "=") && n > 1)
		q.option = words[n - 2];
	else if (!strcmp(start, "=") && n)
		q.start = "";
	help_options(help, find_value, &q);
	/* A value in brackets can be left out. */
	if (q.value[0] && !(q.value[0] == '[' && *start == '-')) {
		offer_value(&q);
	} else if (!strcmp(c->name, "heap") && offer_diff(words, n, start)) {
		/* It is done. */
	} else if (*start == '-' || !offer_argument(help)) {
		help_options(help, offer_option, &q);
		if (begins("--help", start))
			puts("--help\tthis command's help");
	}
	free(help);
}

static void complete_first(const char *start)
{
	offer_commands(start);
	if (begins("help", start))
		puts("help\tthe help of a command");
	if (begins("version", start))
		puts("version\twhich release this is");
	if (*start == '-')
		offer_words("--help --version --debug --color=always --color=never", start);
}

int complete(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "--debug")) {
		argc--;
		argv++;
	}
	if (argc == 1)
		complete_first(argv[0]);
	else if (argc == 2 && !strcmp(argv[0], "help"))
		offer_commands(argv[1]);
	for (const struct command *c = commands; argc > 1 && c->name; c++) {
		if (!strcmp(argv[0], c->name))
			complete_command(c, argv + 1, argc - 2, argv[argc - 1]);
	}
	return MP_EXIT_OK;
}
