/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/maps.h"
#include "attach/proc/procfs.h"
#include "attach/target.h"
#include "cmd/cmd.h"
#include "cmd/notices.h"
#include "cmd/options/process.h"
#include "control/requests.h"
#include "inject/family.h"
#include "inject/find.h"
#include "inject/session.h"
#include "lib/deadline.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "snapshot/guardian.h"
#include "snapshot/reap.h"

#define OPENING_TRIES 25
#define RECORDER_MS   30000 /* time for the recorder to complete its file */

static const char help[] =
    "usage: memprof detach -p PID | -n NAME [--keep]\n"
    "Ends a recording and restores the process, also if its recorder has died.\n"
    "  -p, --pid PID    the process\n"
    "  -n, --name NAME  the process with this name\n"
    "      --keep       end only the recorder: the next memprof attach continues the session with\n"
    "                   its live heap (within 30 seconds; after that, calls are only counted)\n";

static bool session_there(pid_t pid)
{
	uint64_t length;
	struct maps maps;
	bool there;

	if (maps_read(pid, &maps))
		return false;
	there = session_find(&maps, &length) != 0;
	maps_free(&maps);
	return there;
}

/* Is the process restored while its recorder waits for a disk that accepts no data? */
static bool waits_for_disk(const struct session *s)
{
	return __atomic_load_n(&s->block->recorder_stalled, __ATOMIC_RELAXED) &&
	       !session_there(s->t->pid);
}

/* Asks a living recorder to end.  Return: with @keep whether the recorder ended, else whether the
 * process has no session any more. */
static bool ask_recorder(struct session *s, bool keep)
{
	struct deadline deadline = deadline_in_ms(RECORDER_MS);

	__atomic_store_n(&s->block->detach_requested, keep ? SS_DETACH_KEEP : 1, __ATOMIC_RELEASE);
	while (!deadline_passed(&deadline)) {
		if (!recorder_lives(s->journal) ||
		    __atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE) == SS_DORMANT ||
		    (!keep && waits_for_disk(s)))
			break;
		usleep(20000);
	}
	return keep ? !recorder_lives(s->journal) : !session_there(s->t->pid);
}

static void tell_ended(pid_t pid, const struct ss_journal *j)
{
	printf("process %d: the recorder (pid %d) %s: %s\n", pid, j->recorder_pid,
	       recorder_lives(j) ? "restored it and still writes the recording"
				 : "ended the recording and restored it",
	       printable(j->recording));
}

static int fail_late(pid_t pid, const struct ss_journal *j, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ETIMEDOUT,
		       "the recorder of process %d (pid %d) did not end in time", pid,
		       j->recorder_pid);
}

/* Ends a recording whose session may not be opened, for want of a capability, through the recorder,
 * which belongs to the same user.  Return: 0; @ret with @err as it is if there is no recorder to
 * ask; or another negative errno with @err. */
static int end_by_recorder(pid_t pid, int ret, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(RECORDER_MS);
	struct ss_control c;
	struct ss_journal j;

	if (!session_peek(pid, &c, &j) || !recorder_lives(&j))
		return ret;
	ret = request_end(pid, &j, err);
	while (!ret && recorder_lives(&j) && !deadline_passed(&deadline))
		usleep(20000);
	if (ret)
		return ret;
	if (session_there(pid))
		return fail_late(pid, &j, err);
	*err = (struct mp_err){0};
	tell_ended(pid, &j);
	return 0;
}

/* Removes what a killed memprof leaks or heap left in the process.  Return: the number of copies.
 */
static uint32_t clear_copies(struct target *t)
{
	struct mp_err err = {0};
	uint32_t n;

	if (reap_killed(t, false, &n, &err))
		complain(&err);
	if (n)
		printf("process %d: removed the remains of %s that a killed memprof had left\n",
		       t->pid, counted(n, "copy"));
	return n;
}

static int hand_over(struct session *s, bool child, struct mp_err *err)
{
	if (child || !s->block || !recorder_lives(s->journal))
		return mp_fail(err, MP_EXIT_NO_SESSION, -ESRCH,
			       "process %d has no running recorder", s->t->pid);
	if (!ask_recorder(s, true))
		return fail_late(s->t->pid, s->journal, err);
	printf("process %d: the recorder (pid %d) ended, the session stays; continue with: memprof "
	       "attach -p %d\n",
	       s->t->pid, s->journal->recorder_pid, s->t->pid);
	return 0;
}

/* Return: whether the process has no tracer, or memprof is its tracer. */
static bool no_other_tracer(pid_t pid)
{
	struct proc_status st, tracer;

	return !proc_status_read(pid, 0, &st) &&
	       (!st.tracer || proc_status_read(st.tracer, 0, &tracer) ||
		!strcmp(tracer.name, "memprof") || !strcmp(tracer.name, GUARDIAN_NAME));
}

/* target_look(), with retries while another memprof traces the process: its recorder installing or
 * removing hooks, or the guardian of a killed memprof. */
static int look_with_retries(struct target *t, pid_t pid, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(RECORDER_MS);
	int ret = target_look(t, pid, err);

	while (ret && err->exit == MP_EXIT_TRACED && no_other_tracer(pid) &&
	       !deadline_passed(&deadline)) {
		usleep(20000);
		ret = target_look(t, pid, err);
	}
	if (!ret)
		t->steps = debug_steps();
	return ret;
}

/* Adopts the session.  A session without a block is being opened just now, or its recorder died
 * while opening it: so it retries for a while. */
static int adopt(struct session *s, struct target *t, struct mp_err *err)
{
	int ret = session_adopt(s, t, err);

	for (int i = 0; !ret && !s->block && i < OPENING_TRIES; i++) {
		session_free(s);
		usleep(20000);
		ret = session_adopt(s, t, err);
	}
	return ret;
}

/* Did the attempt to close the session fail because a recorder traced the process, one that is not
 * yet named in the session? */
static bool recorder_came_between(pid_t pid, const struct mp_err *err)
{
	return (err->exit == MP_EXIT_TRACED || err->exit == MP_EXIT_PERMISSION) &&
	       no_other_tracer(pid);
}

/* Explains why there was something to restore without a recorder.  @ended: the recorder has just
 * been asked to end. */
static const char *about_session(const struct session *s, bool child, bool ended)
{
	if (child)
		return " (it was forked from a recorded one)";
	if (ended)
		return "";
	if (s->journal && s->journal->state == SS_DORMANT)
		return ": the pages that an earlier detach had to leave are removed";
	return "; its recorder was gone, and the recording can be read up to that time";
}

/* Ends the recording and restores the process.  @t: after look_with_retries(); is closed here.
 * @again: set if a recorder came between and another try can succeed.
 * Return: 0, or a negative errno with @err. */
static int detach(struct target *t, bool keep, bool *again, struct mp_err *err)
{
	pid_t pid = t->pid;
	struct session s;
	struct session_id id = {0};
	uint32_t forked, left = 0, copies = clear_copies(t);
	bool child, asks;
	int ret = adopt(&s, t, err);

	if (ret) {
		*again = recorder_came_between(pid, err) && err->exit != MP_EXIT_PERMISSION;
		target_close(t);
		if (err->exit == MP_EXIT_PERMISSION && !keep)
			return end_by_recorder(pid, ret, err);
		return copies && err->exit == MP_EXIT_NO_SESSION ? 0 : ret;
	}
	child = session_is_child(&s);
	asks = !keep && s.block && !child && recorder_lives(s.journal);
	session_id_of(pid, &id);
	if (keep) {
		ret = hand_over(&s, child, err);
	} else if (asks && ask_recorder(&s, false)) {
		tell_ended(pid, s.journal);
	} else {
		const char *about = about_session(&s, child, asks);

		ret = session_close(&s, err);
		if (!ret)
			printf("process %d is restored%s\n", pid, about);
	}
	*again = ret && recorder_came_between(pid, err);
	session_free(&s);
	target_close(t);
	forked = child || keep || ret ? 0 : family_restore(&id, 1, pid, &left);
	tell_restored(forked);
	return ret;
}

int cmd_detach(int argc, char **argv)
{
	static const struct option options[] = {
	    PROCESS_LONG, {"keep", no_argument, NULL, 'k'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct deadline deadline;
	struct target t;
	struct mp_err err;
	bool keep = false, again;
	pid_t pid = 0;
	int c, ret;

	while ((c = getopt_long(argc, argv, ":h" PROCESS_SHORT, options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'k') {
			keep = true;
			continue;
		}
		if (c != 'p' && c != 'n')
			return option_error("detach", c, argv, options);
		ret = process_option("detach", c, optarg, &pid);
		if (ret)
			return ret;
	}
	if (optind < argc)
		return unexpected_argument("detach", argv[optind]);
	if (!pid)
		return process_missing("detach");
	deadline = deadline_in_ms(RECORDER_MS);
	for (;;) {
		err = (struct mp_err){0};
		if (look_with_retries(&t, pid, &err))
			return complain(&err);
		again = false;
		ret = detach(&t, keep, &again, &err);
		if (!again || deadline_passed(&deadline))
			break;
		usleep(20000);
	}
	return ret ? complain(&err) : MP_EXIT_OK;
}
