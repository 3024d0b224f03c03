/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "control/descendants.h"
#include "control/news.h"
#include "control/notices.h"
#include "control/recording.h"
#include "inject/family.h"
#include "lib/deadline.h"
#include "lib/printable.h"

#define TICK_MS	 10
#define REST	 1 /* rest after an attempt that was too late, in multiples of its duration */
#define MAX_REST 1000000000ull
#define TRIES	 3 /* to attach to a process that keeps changing */
#define RETRY_US 20000

/* ---------------------------------------------------------------- a recorder's process -- */

static int record_process(const struct member *m, const struct recording_options *o)
{
	pid_t pid = m->pid;
	struct mp_err err = {0};
	struct target t;
	int status, ret = target_look(&t, pid, &err);

	/* Another memprof might be restoring it at this moment. */
	for (int i = 0; ret && err.exit == MP_EXIT_TRACED && i < TRIES; i++) {
		usleep(RETRY_US);
		ret = target_look(&t, pid, &err);
	}
	if (ret)
		return recording_failed(o, &err);
	t.steps = o->steps ? o->steps() : NULL;
	t.begun_ns = m->again ? m->started_ns : 0;
	status = family_leave(&t, &err) ? recording_failed(o, &err) : recording_run(&t, o, false);
	target_close(&t);
	return status;
}

/* Ends a recorder's process: without the functions that the caller registered with atexit(), which
 * the follower's process calls. */
static void end_process(int status)
{
	fflush(NULL);
	_exit(status);
}

static int open_news(struct member *m)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	m->news = p[0];
	return p[1];
}

/* Sets the options for @m's recorder.  @news: the pipe to this process. */
static void options_of(struct follow *f, const struct member *m, int news,
		       struct recording_options *o)
{
	bool same_file = m->again && m->root && f->o->replace_at_exec;

	*o = *f->o;
	o->news_fd = news;
	o->count = same_file ? 0 : f->count++;
	o->again = m->again && !same_file;
	o->child = !m->root || m->again;
	o->quiet |= !m->root;
}

static int start_member(struct follow *f, struct member *m, char *const argv[])
{
	struct recording_options o;
	int news = open_news(m);
	sigset_t child_signal;

	if (news < 0)
		return news;
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	options_of(f, m, news, &o);
	m->started_ns = mono_ns();
	fflush(NULL);
	m->recorder = fork();
	if (m->recorder == 0) {
		int null = m->root ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);

		/* A child's recorder unblocks SIGCHLD only: the ending signals stay blocked while
		 * it takes the parent's session out of the child, until recording_run() handles
		 * them. */
		sigprocmask(argv ? SIG_SETMASK : SIG_UNBLOCK, argv ? &f->mask : &child_signal,
			    NULL);
		close(f->signals);
		/* Only the follower keeps the read ends of the pipes: their writers notice by this
		 * that the follower has ended. */
		close(m->news);
		vec_for_each (&f->members, other) {
			if (other->news >= 0)
				close(other->news);
		}
		if (null >= 0)
			dup2(null, STDOUT_FILENO);
		end_process(argv ? recording_launch(argv, &o) : record_process(m, &o));
	}
	close(news);
	if (m->recorder < 0) {
		close(m->news);
		return -errno;
	}
	return 0;
}

/* ---------------------------------------------------------------- queue of children -- */

/* The number of recorders that have not yet attached. */
static long beginning(const struct follow *f)
{
	long n = 0;

	vec_for_each (&f->members, m)
		n += m->recorder > 0 && !m->has_id && !m->over;
	return n;
}

/* Sets the rest after member @m, whose process ended before memprof attached to it. */
static void too_late(struct follow *f, const struct member *m)
{
	uint64_t now = mono_ns(), rest = REST * (now - m->started_ns);

	f->rest_until_ns = now + (rest < MAX_REST ? rest : MAX_REST);
}

/* Counts a child that cannot be recorded; if there is no memory for that, reports it at once. */
static void refuse_follow(struct follow *f, const struct mp_err *why)
{
	if (children_refused(&f->children, why))
		notice(f->o->notices, "%s", printable(why->what));
}

static void follow_child(struct follow *f, pid_t pid)
{
	struct member m = {.pid = pid, .news = -1};
	int ret = start_member(f, &m, NULL);

	if (!ret && !vec_push(&f->members, m))
		return;
	refuse_follow(f, &(struct mp_err){.exit = MP_EXIT_FAILURE,
					  .what = "a recorder could not be started"});
}

/*
 * Starts recorders for waiting children, at most one per processor at a time.  The oldest child is
 * the most likely to live on, the youngest the most likely to be still alive when memprof attaches:
 * alternates between them.
 */
static void serve_the_waiting(struct follow *f)
{
	long room = sysconf(_SC_NPROCESSORS_ONLN) - beginning(f);
	size_t kept = 0;

	vec_for_each (&f->waiting, pid) {
		if (process_is_alive(*pid))
			f->waiting.at[kept++] = *pid;
		else
			f->children.ended++;
	}
	f->waiting.n = kept;
	if (mono_ns() < f->rest_until_ns)
		return;
	for (; room > 0 && f->waiting.n; room--) {
		size_t at = f->youngest ? f->waiting.n - 1 : 0;
		pid_t pid = f->waiting.at[at];

		f->youngest = !f->youngest;
		f->waiting.n--;
		memmove(&f->waiting.at[at], &f->waiting.at[at + 1],
			(f->waiting.n - at) * sizeof(pid));
		if (is_followed(f, pid) > 0) /* the pid is still that child's */
			follow_child(f, pid);
	}
}

/* ---------------------------------------------------------------- waiting -- */

static void signal_all(const struct follow *f, int sig)
{
	vec_for_each (&f->members, m) {
		if (m->recorder > 0)
			kill(m->recorder, sig);
	}
}

static void end_all(struct follow *f)
{
	f->ending = true;
	signal_all(f, SIGTERM);
}

static bool runs_something_else(const struct member *m)
{
	struct session_id id;

	return process_is_alive(m->pid) && !session_id_of(m->pid, &id);
}

/* Follows the program that replaced the one that member @old recorded. */
static void follow_exec(struct follow *f, const struct member *old, uint32_t failures)
{
	struct member m = {
	    .pid = old->pid, .root = old->root, .again = true, .news = -1, .failures = failures};
	bool replace = m.root && f->o->replace_at_exec;

	if ((!replace && !f->o->follow_exec) || start_member(f, &m, NULL) ||
	    vec_push(&f->members, m))
		return;
	if (!f->o->quiet && !failures && !replace)
		notice(f->o->notices, "process %d executed another program, which is recorded now",
		       m.pid);
}

/* The program on the command line is not the one in the recording any more. */
static void tell_replaced(const struct follow *f, const struct member *m)
{
	if (m->root && m->again && f->o->replace_at_exec && !f->o->quiet)
		notice(f->o->notices,
		       "process %d executed another program, which is recorded instead", m->pid);
}

/* Reads the reports of member @i's recorder.  The members array can be reallocated. */
static void read_news(struct follow *f, size_t i)
{
	struct member *m = &f->members.at[i];
	struct recording_news news;

	while (m->news >= 0 && read(m->news, &news, sizeof(news)) == (ssize_t)sizeof(news)) {
		if (news.kind == NEWS_FAILED) {
			m->why = news.why;
			continue;
		}
		m->id = news.id;
		m->has_id = true;
		m->pid = news.recording.pid;
		if (news.kind == NEWS_BEGUN) {
			tell_replaced(f, m);
			f->o->notices->started(f->o->notices->ctx);
			continue;
		}
		m->over = true;
		close(m->news);
		m->news = -1;
		if (m->root)
			snprintf(f->before, sizeof(f->before), "%s", news.recording.path);
		else
			children_recorded(&f->children, &news.recording);
		if (!f->ending && news.reason == MP_END_EXECED)
			follow_exec(f, &(struct member){.pid = m->pid, .root = m->root}, 0);
		else if (!f->ending && m->root &&
			 (news.reason == MP_END_DETACHED || news.reason == MP_END_TIME))
			end_all(f);
		return;
	}
}

/* Reports why the later program of the process on the command line is not recorded. */
static void tell_not_replaced(struct follow *f, const struct member *m, const struct mp_err *why)
{
	/* A recorder that fails late has replaced the file already. */
	const char *kept = !f->o->replace_at_exec    ? ""
			   : access(f->before, F_OK) ? "; there is no recording"
						     : "; the recording is of the program before";

	if (why->exit == MP_EXIT_NO_PROCESS) {
		notice(f->o->notices,
		       "process %d executed another program, which ended before memprof was "
		       "attached to it%s",
		       m->pid, kept);
		return;
	}
	f->again_status = why->exit ? (int)why->exit : MP_EXIT_FAILURE;
	notice(f->o->notices, "the program that process %d executed is not recorded: %s%s", m->pid,
	       printable(why->what), kept);
}

/* Handles a recorder, not the first, that ended without a recording. */
static void note_failure(struct follow *f, const struct member *m, int status)
{
	struct mp_err why = m->why;

	if (!process_is_alive(m->pid))
		why.exit = MP_EXIT_NO_PROCESS;
	else if (!why.what[0])
		mp_fail(&why, MP_EXIT_FAILURE, 0, "the recorder of process %d %s %d", m->pid,
			WIFSIGNALED(status) ? "was killed by signal" : "exited with status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (m->root) {
		tell_not_replaced(f, m, &why);
		return;
	}
	if (why.exit == MP_EXIT_NO_PROCESS)
		too_late(f, m);
	refuse_follow(f, &why);
}

static void reap_one(struct follow *f, size_t i, int status)
{
	struct member *m;

	read_news(f, i);
	m = &f->members.at[i];
	m->recorder = 0;
	if (m->root && !m->again)
		f->status = WIFEXITED(status) ? WEXITSTATUS(status) : MP_EXIT_FAILURE;
	if (m->over) {
		if (m->root && m->again)
			f->again_status = WIFEXITED(status) ? WEXITSTATUS(status) : MP_EXIT_FAILURE;
		return;
	}
	m->over = true; /* it failed */
	if (m->news >= 0)
		close(m->news);
	m->news = -1;
	if (m->root && !m->again)
		return;
	if (!f->ending && m->failures + 1 < TRIES && runs_something_else(m))
		follow_exec(f, &(struct member){.pid = m->pid, .root = m->root}, m->failures + 1);
	else
		note_failure(f, m, status);
}

static void reap(struct follow *f)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < f->members.n; i++) {
			if (f->members.at[i].recorder == pid) {
				reap_one(f, i, status);
				break;
			}
		}
	}
}

static void take_signals(struct follow *f)
{
	struct signalfd_siginfo si;

	while (read(f->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGUSR1)
			signal_all(f, SIGUSR1);
		else if (si.ssi_signo != SIGCHLD)
			end_all(f);
	}
}

static bool any_recorder(const struct follow *f)
{
	vec_for_each (&f->members, m) {
		if (m->recorder > 0)
			return true;
	}
	return false;
}

/* A recorder that started the program still waits for its end after the recording. */
static bool any_recording(const struct follow *f)
{
	vec_for_each (&f->members, m) {
		if (m->recorder > 0 && !m->over)
			return true;
	}
	return false;
}

static void take_turn(struct follow *f)
{
	struct pollfd p[2] = {{.fd = f->signals, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

	/* What a program does between its exec and the attach is not recorded. */
	vec_for_each (&f->members, m) {
		if (m->root && m->news >= 0)
			p[1].fd = m->news;
	}
	poll(p, 2, TICK_MS);
	take_signals(f);
	reap(f);
	for (size_t i = 0; i < f->members.n; i++)
		read_news(f, i);
}

static void wait_for_recordings(struct follow *f)
{
	while (any_recording(f) || (!f->ending && f->waiting.n)) {
		take_turn(f);
		if (f->ending || !f->o->follow_fork)
			continue;
		if (scan_is_due(f, mono_ns()))
			find_descendants(f);
		serve_the_waiting(f);
	}
	vec_for_each (&f->waiting, p)
		f->children.unasked += process_is_alive(*p);
	f->children.ended += f->waiting.n - f->children.unasked;
}

/* Restores children that were not followed in time, or were not to be followed. */
static void restore_rest(struct follow *f)
{
	uint32_t restored, left;

	vec_for_each (&f->members, m) {
		if (m->has_id && vec_push(&f->left, m->id))
			break;
	}
	restored = family_restore(f->left.at, f->left.n, 0, &left);
	if (restored && !f->o->quiet)
		f->o->notices->restored(f->o->notices->ctx, restored, true);
	if (left)
		notice(f->o->notices, "%u forked process%s memprof's pages; see: memprof status",
		       left, left == 1 ? " still has" : "es still have");
}

int follow_run(pid_t pid, char *const argv[], const struct recording_options *o)
{
	struct follow f = {.o = o};
	struct member root = {.pid = pid, .root = true, .news = -1};
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &f.mask);
	f.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	ret = f.signals < 0 ? -errno : start_member(&f, &root, pid ? NULL : argv);
	if (!ret)
		ret = vec_push(&f.members, root);
	if (ret) {
		notice(o->notices, "cannot start a recorder: %s", strerror(-ret));
		return MP_EXIT_FAILURE;
	}
	wait_for_recordings(&f);
	restore_rest(&f);
	if (!o->quiet)
		o->notices->followed(o->notices->ctx, &f.children, o->page_faults);
	while (any_recorder(&f))
		take_turn(&f);
	close(f.signals);
	children_free(&f.children);
	vec_free(&f.members);
	vec_free(&f.waiting);
	vec_free(&f.left);
	vec_free(&f.seen);
	return f.again_status ? f.again_status : f.status;
}
