/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/process.h"

#include <dirent.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/process_name.h"
#include "attach/proc/procfs.h"
#include "cmd/cmd.h"
#include "cmd/options/parse.h"
#include "lib/path.h"
#include "lib/printable.h"

#define MOST_LISTED 20
#define BLANKS	    " \t\n,"

/* Prints a line about each process, as far as it still exists. */
static void list(const struct tids *pids)
{
	for (size_t i = 0; i < pids->list.n; i++) {
		pid_t pid = pids->list.at[i];
		const struct passwd *user;
		struct proc_status st;
		char cmdline[120];

		if (i == MOST_LISTED) {
			fprintf(stderr, "  ... and %zu more\n", pids->list.n - i);
			return;
		}
		if (proc_status_read(pid, 0, &st)) {
			fprintf(stderr, "%9d  (no such process)\n", pid);
			continue;
		}
		user = getpwuid(st.uid);
		if (proc_cmdline(pid, cmdline, sizeof(cmdline)) || !cmdline[0])
			snprintf(cmdline, sizeof(cmdline), "[%s]", st.name);
		fprintf(stderr, "%9d  %-10s %s\n", pid, user ? printable(user->pw_name) : "?",
			printable(cmdline));
	}
}

/* Return: 0 with @pids to be freed, or -1 if /proc cannot be listed. */
static int find_name(const char *name, struct tids *pids)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int ret = d ? 0 : -1;
	pid_t pid;

	*pids = (struct tids){0};
	while (d && !ret && (e = readdir(d))) {
		if (parse_pid(e->d_name, &pid) && pid != getpid() && process_has_name(pid, name))
			ret = vec_push(&pids->list, pid) ? -1 : 0;
	}
	if (d)
		closedir(d);
	return ret;
}

static int take_name(const char *command, const char *name, pid_t *pid)
{
	struct mp_err err = {.exit = MP_EXIT_FAILURE, .what = "cannot list /proc"};
	struct tids found;
	int status = 0;

	if (!*name)
		return usage_error("%s: -n: the name is empty", command);
	if (find_name(name, &found)) {
		status = complain(&err);
	} else if (found.list.n == 1) {
		*pid = found.list.at[0];
	} else if (!found.list.n) {
		(void)mp_fail(&err, MP_EXIT_NO_PROCESS, 0,
			      "no process has the name '%.100s' (exactly, also as its argv[0] or "
			      "executable without folders)",
			      name);
		status = complain(&err);
	} else {
		status = usage_error("%s: -n: %zu processes have the name '%.100s'; choose one of "
				     "them with -p",
				     command, found.list.n, name);
		list(&found);
	}
	vec_free(&found.list);
	return status;
}

bool process_read_several(const char *text, struct tids *pids)
{
	char *copy = strdup(text), *rest, *word;
	bool good = copy != NULL;
	pid_t pid;

	*pids = (struct tids){0};
	for (word = copy ? strtok_r(copy, BLANKS, &rest) : NULL; word && good;
	     word = strtok_r(NULL, BLANKS, &rest))
		good = parse_pid(word, &pid) && !vec_push(&pids->list, pid);
	free(copy);
	return good && pids->list.n;
}

static int take_pid(const char *command, const char *text, pid_t *pid)
{
	struct tids several;
	int status = 0;

	if (parse_pid(text, pid))
		return 0;
	if (!*text)
		return usage_error("%s: -p: the process id is empty; if it is the output of a "
				   "command such as pidof, that found no process",
				   command);
	if (!process_read_several(text, &several)) {
		status = usage_error("%s: -p: '%.100s' is not a process id%s", command, text,
				     strpbrk(text, "0123456789") ? "" : "; -n takes a name");
	} else if (several.list.n == 1) {
		*pid = several.list.at[0];
	} else {
		status = usage_error("%s: -p: '%.100s' are %zu processes; choose one of them",
				     command, text, several.list.n);
		list(&several);
	}
	vec_free(&several.list);
	return status;
}

int process_option(const char *command, int opt, const char *value, pid_t *pid)
{
	if (*pid)
		return usage_error("%s: -%c: more than one process was given (the first is %d); "
				   "run memprof once for each",
				   command, opt, *pid);
	return opt == 'n' ? take_name(command, value, pid) : take_pid(command, value, pid);
}

int process_missing(const char *command)
{
	return usage_error("%s: which process? give -p PID or -n NAME", command);
}
