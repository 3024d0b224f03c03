/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/inspect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "server/own_command.h"
#include "server/recordings.h"
#include "server/running.h"

/* The exit status of memprof leaks when there are some. */
#define LEAKS_FOUND 1

/* Return: whether the command wrote what it was asked for. */
static bool succeeded(const struct own_command_end *end, int also)
{
	int status = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : -1;

	return end->bytes && (!status || status == also);
}

/* Fills @err with why the command ended. */
static int explain(const struct own_command_end *end, const char *command, struct mp_err *err)
{
	if (WIFSIGNALED(end->status))
		return mp_fail(err, MP_EXIT_FAILURE, -EIO, "memprof %s was ended by signal %d",
			       command, WTERMSIG(end->status));
	if (!*end->said)
		return mp_fail(err, MP_EXIT_FAILURE, -EIO,
			       "memprof %s ended with status %d and gave no reason", command,
			       WEXITSTATUS(end->status));
	return mp_fail(err, MP_EXIT_FAILURE, -EBUSY, "%s", end->said);
}

/* @argv: its [3] becomes the process.  @also: an exit status that means success, too. */
static int inspect(struct answer *a, const char **argv, int also, struct mp_err *err)
{
	struct own_command_end end;
	char text[16];
	pid_t pid;
	int ret = running_find(&a->recordings->at.at[a->call->recording], &pid, err);

	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%d", pid);
	argv[3] = text;
	ret = own_command_run(argv, a->out, &end);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot run memprof %s: %s", argv[1],
			       strerror(-ret));
	return succeeded(&end, also) ? 0 : explain(&end, argv[1], err);
}

int answer_leaks(struct answer *a, struct mp_err *err)
{
	const char *argv[] = {"memprof",	  "leaks", "-p", NULL, "--no-content", "--json",
			      OWN_COMMAND_OUTPUT, NULL};

	return inspect(a, argv, LEAKS_FOUND, err);
}

int answer_retained(struct answer *a, struct mp_err *err)
{
	const char *argv[] = {"memprof",	  "heap", "-p", NULL, "--retained", "--json",
			      OWN_COMMAND_OUTPUT, NULL};

	return inspect(a, argv, 0, err);
}
