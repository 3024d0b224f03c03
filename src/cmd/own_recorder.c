/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/own_recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "attach/target.h"
#include "cmd/background.h"
#include "cmd/cmd.h"
#include "cmd/notices.h"
#include "cmd/options/options.h"
#include "cmd/signals.h"
#include "control/output_name.h"
#include "control/requests.h"
#include "lib/printable.h"
#include "lib/temporary.h"
#include "record/pieces/carry.h"

#define FILE_NAME "live.memprof"

#define QUIET_WAITS 50
#define WAIT_US	    10000

static int failed(const char *what)
{
	fprintf(stderr, "memprof: %s: %s\n", what, strerror(errno));
	return MP_EXIT_FAILURE;
}

/* Makes the directory of a recording that is removed at the end, and the pattern of its path. */
static int make_directory(struct own_recorder *r, char *pattern, size_t size)
{
	char path[sizeof(r->dir) + sizeof(FILE_NAME)];
	struct mp_err err = {0};

	if (temporary_make("memprof-live", r->dir, sizeof(r->dir), &err))
		return complain(&err);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, r->dir);
	output_literal(path, pattern, size);
	return 0;
}

/* The signals that end a recording. */
static sigset_t endings(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	return set;
}

/* Keeps the recording, for those who still read it, until the command ends or is killed. */
static void wait_for_command(const struct own_recorder *r, pid_t parent)
{
	int pidfd = (int)syscall(SYS_pidfd_open, parent, 0);
	struct pollfd p[2] = {{.fd = r->quit, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};

	while (pidfd >= 0 && getppid() == parent && poll(p, 2, -1) <= 0 && errno == EINTR)
		continue;
}

/* The process of the recorder.  The signals that end it are blocked until it waits for them. */
static void run_recorder(struct target *t, const struct recording_options *o,
			 const struct own_recorder *r, pid_t parent)
{
	int status = MP_EXIT_FAILURE;

	background_leave_terminal();
	dup2(fileno(r->messages), STDERR_FILENO);
	/* When the command is killed the recording ends, too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent)
		status = record(t, o);
	fflush(NULL);
	if (!status && r->dir[0])
		wait_for_command(r, parent);
	temporary_remove(r->dir);
	_exit(status);
}

/* Prints what the recorder wrote. */
static void print_messages(struct own_recorder *r)
{
	char line[4096];

	rewind(r->messages);
	while (fgets(line, sizeof(line), r->messages))
		fputs(line, stderr);
	fclose(r->messages);
	r->messages = NULL;
}

static int start_recorder(struct target *t, const struct recording_options *o,
			  struct own_recorder *r)
{
	const pid_t parent = getpid();
	sigset_t set = endings(), before;
	int status = MP_EXIT_OK;

	r->messages = tmpfile();
	if (!r->messages)
		return failed("cannot make a temporary file");
	r->quit = eventfd(0, EFD_CLOEXEC);
	if (r->quit < 0)
		return failed("cannot make an event");
	fflush(NULL);
	sigprocmask(SIG_BLOCK, &set, &before);
	r->pid = fork();
	if (r->pid == 0)
		run_recorder(t, o, r, parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r->pid < 0) {
		r->pid = 0;
		status = failed("cannot fork");
	} else if (!background_wait(r->pid, t->pid, false, &status)) {
		r->pid = 0;
		/* It ended before the command could look at it. */
		status = status ? status : MP_EXIT_NO_PROCESS;
	}
	if (status)
		print_messages(r);
	return status;
}

static int begin_recording(const char *command, pid_t pid, const struct recording_options *wanted,
			   struct own_recorder *r)
{
	struct recording_options o = *wanted;
	const char *output = o.path;
	char pattern[2 * (sizeof(r->dir) + sizeof(FILE_NAME))];
	struct mp_err err = {0};
	struct ss_control c;
	struct ss_journal j;
	struct target t;
	int status;

	*r = (struct own_recorder){.recorded = pid};
	o.quiet = true;
	o.notices = notices_printed(false);
	o.orders = orders_by_signal();
	o.steps = debug_steps;
	if (target_look(&t, pid, &err))
		return complain(&err);
	t.steps = debug_steps();
	status = output ? 0 : make_directory(r, pattern, sizeof(pattern));
	if (!status && !output) {
		o.path = pattern;
		/* The file is removed at the end, so its symbols are not needed. */
		o.debuginfod = DEBUGINFOD_NEVER;
	}
	status = status ? status : recording_options_settle(command, &o);
	status = status ? status : start_recorder(&t, &o, r);
	if (status)
		temporary_remove(r->dir);
	else if (output && session_peek(pid, &c, &j))
		snprintf(r->kept, sizeof(r->kept), "%s", j.recording);
	target_close(&t);
	return status;
}

int own_recorder_want(const char *command, pid_t pid, const struct recording_options *o,
		      struct own_recorder *r)
{
	struct proc_status st;
	struct mp_err err = {0};
	struct ss_control c;
	struct ss_journal j;

	*r = (struct own_recorder){0};
	if (session_peek(pid, &c, &j) && j.state == SS_LIVE) {
		/* What an own recorder continued would be lost with its file. */
		if (!recorder_lives(&j)) {
			mp_fail(
			    &err, MP_EXIT_ATTACHED, -EBUSY,
			    "process %d has a session whose recorder is gone; first run memprof "
			    "attach -p %d, which continues it, or memprof detach -p %d",
			    pid, pid, pid);
			return complain(&err);
		}
		if (o->path)
			return usage_error("%s: --output: process %d is being recorded already, "
					   "to %s",
					   command, pid, printable(j.recording));
		return 0;
	}
	if (!proc_status_read(pid, 0, &st))
		fprintf(stderr, "attaching to %s (%d) ...\n", printable(st.name), pid);
	return begin_recording(command, pid, o, r);
}

/* Waits for the end of the recorder.  Return: as waitpid() sets it. */
static int wait_for_end(pid_t recorder)
{
	int status = 0;

	for (int i = 0; i < QUIET_WAITS; i++) {
		if (waitpid(recorder, &status, WNOHANG) == recorder)
			return status;
		usleep(WAIT_US);
	}
	fprintf(stderr, "memprof: waiting for the end of the recording\n");
	while (waitpid(recorder, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

int own_recorder_end(struct own_recorder *r)
{
	const uint64_t one = 1;
	int wait;

	if (!r->pid)
		return MP_EXIT_OK;
	(void)!write(r->quit, &one, sizeof(one));
	kill(r->pid, SIGTERM);
	wait = wait_for_end(r->pid);
	close(r->quit);
	temporary_remove(r->dir);
	if (r->kept[0])
		printf("recorded to %s\n", printable(r->kept));
	r->pid = 0;
	print_messages(r);
	if (WIFEXITED(wait))
		return WEXITSTATUS(wait);
	fprintf(stderr,
		"memprof: the recorder was killed; this restores the process: memprof detach "
		"-p %d\n",
		r->recorded);
	return MP_EXIT_NOT_RESTORED;
}
