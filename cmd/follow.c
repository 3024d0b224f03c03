/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/follow.h"

#include <dirent.h>
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
#include "lib/vec.h"

#define TICK_MS	 50
#define TRIES	 3 /* to attach to a process that changes meanwhile */
#define RETRY_US 20000

struct member {
	pid_t pid, recorder; /* recorder 0: it is over */
	int news;	     /* pipe from the recorder; -1: closed */
	bool root, has_id, over;
	uint32_t failures;
	struct session_id id;
};

struct follow {
	const struct recording_options *o;
	VEC(struct member) members;
	VEC(pid_t) seen; /* looked at, and nothing to us */
	sigset_t mask;	 /* before ours */
	uint32_t count;	 /* recordings so far */
	int signals, status;
	bool ending;
};

/* ---------------------------------------------------------------- a recorder's process -- */

static int record_process(pid_t pid, const struct recording_options *o)
{
	struct mp_err err = {0};
	struct target t;
	int status, ret = target_look(&t, pid, &err);

	/* Somebody else may be restoring it at this moment. */
	for (int i = 0; ret && err.exit == MP_EXIT_TRACED && i < TRIES; i++) {
		usleep(RETRY_US);
		ret = target_look(&t, pid, &err);
	}
	if (ret)
		return complain(&err);
	status = family_leave(&t, &err) ? complain(&err) : recording_run(&t, o, false);
	target_close(&t);
	return status;
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

static int start(struct follow *f, struct member *m, char *const argv[], bool again)
{
	struct recording_options o = *f->o;
	int news = open_news(m);

	if (news < 0)
		return news;
	o.news_fd = news;
	o.count = f->count++;
	o.again = again;
	o.quiet |= !m->root;
	fflush(NULL);
	m->recorder = fork();
	if (m->recorder == 0) {
		int null = m->root && !again ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);

		sigprocmask(SIG_SETMASK, &f->mask, NULL);
		close(f->signals);
		/* Only this process holds the readers' ends: a writer sees by that when it has
		 * ended. */
		close(m->news);
		vec_for_each (&f->members, other) {
			if (other->news >= 0)
				close(other->news);
		}
		if (null >= 0)
			dup2(null, STDOUT_FILENO);
		exit(argv ? launch_and_record(argv, &o) : record_process(m->pid, &o));
	}
	close(news);
	if (m->recorder < 0) {
		close(m->news);
		return -errno;
	}
	return 0;
}

/* ---------------------------------------------------------------- finding -- */

static bool listed(const struct follow *f, pid_t pid)
{
	vec_for_each (&f->seen, p) {
		if (*p == pid)
			return true;
	}
	vec_for_each (&f->members, m) {
		if (m->pid == pid || m->recorder == pid)
			return true;
	}
	return false;
}

static bool is_member(const struct follow *f, pid_t pid)
{
	vec_for_each (&f->members, m) {
		if (m->pid == pid)
			return true;
	}
	return false;
}

/* Return: 1 to be followed, 0 nothing to us, -1 to be looked at again. */
static int judge(const struct follow *f, pid_t pid)
{
	struct proc_status st;
	struct session_id id;

	if (proc_status_read(pid, 0, &st) || st.kernel_thread || st.state == 'Z')
		return 0;
	if (!session_id_of(pid, &id))
		return f->o->follow_exec && is_member(f, st.ppid);
	vec_for_each (&f->members, m) {
		if (!m->has_id || !session_id_equal(&m->id, &id))
			continue;
		/* A vfork child is its parent until it execs. */
		return family_is_child(pid) ? 1 : -1;
	}
	return -1; /* its parent may not have told yet */
}

static void follow_child(struct follow *f, pid_t pid)
{
	struct member m = {.pid = pid, .news = -1};
	struct proc_status st;

	if (start(f, &m, NULL, false) || vec_push(&f->members, m))
		return;
	if (!f->o->quiet && !proc_status_read(pid, 0, &st))
		fprintf(stderr, "memprof: following process %d (%s)\n", pid, st.name);
}

static void look(struct follow *f)
{
	DIR *d = opendir("/proc");
	VEC(pid_t) seen = {0};
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid;
		int what;

		if (!parse_pid(e->d_name, &pid) || pid == getpid())
			continue;
		what = listed(f, pid) ? 0 : judge(f, pid);
		if (what > 0)
			follow_child(f, pid);
		else if (!what && vec_push(&seen, pid))
			break;
	}
	if (d)
		closedir(d);
	/* Of those that are gone a number may come again. */
	vec_free(&f->seen);
	memcpy(&f->seen, &seen, sizeof(seen));
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
	struct proc_status st;

	return !proc_status_read(m->pid, 0, &st) && st.state != 'Z' && !session_id_of(m->pid, &id);
}

/* The program that replaced the recorded one in the same process. */
static void follow_exec(struct follow *f, pid_t pid, uint32_t failures)
{
	struct member m = {.pid = pid, .news = -1, .failures = failures};

	if (!f->o->follow_exec || start(f, &m, NULL, true) || vec_push(&f->members, m))
		return;
	if (!f->o->quiet)
		fprintf(stderr, "memprof: process %d runs another program: following\n", pid);
}

/* What the recorder of member @i tells; members may move. */
static void hear(struct follow *f, size_t i)
{
	struct member *m = &f->members.at[i];
	struct recording_news news;

	while (m->news >= 0 && read(m->news, &news, sizeof(news)) == (ssize_t)sizeof(news)) {
		m->id = news.id;
		m->has_id = true;
		m->pid = news.pid;
		if (!news.ended) {
			if (f->o->background) /* whoever started us may wait for our output's end */
				dup2(STDOUT_FILENO, STDERR_FILENO);
			continue;
		}
		m->over = true;
		close(m->news);
		m->news = -1;
		if (!f->ending && news.reason == MP_END_EXECED)
			follow_exec(f, news.pid, 0);
		else if (!f->ending && m->root &&
			 (news.reason == MP_END_DETACHED || news.reason == MP_END_TIME))
			end_all(f);
		return;
	}
}

static void reap_one(struct follow *f, size_t i, int status)
{
	struct member *m;

	hear(f, i);
	m = &f->members.at[i];
	m->recorder = 0;
	if (m->root)
		f->status = WIFEXITED(status) ? WEXITSTATUS(status) : MP_EXIT_FAILURE;
	if (m->over)
		return;
	m->over = true; /* it failed */
	if (m->news >= 0)
		close(m->news);
	m->news = -1;
	if (!f->ending && !m->root && m->failures + 1 < TRIES && runs_something_else(m))
		follow_exec(f, m->pid, m->failures + 1);
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

static void wait_for_all(struct follow *f)
{
	while (any_recorder(f)) {
		struct pollfd p = {.fd = f->signals, .events = POLLIN};

		poll(&p, 1, TICK_MS);
		take_signals(f);
		reap(f);
		for (size_t i = 0; i < f->members.n; i++)
			hear(f, i);
		if (!f->ending && f->o->follow_fork)
			look(f);
	}
}

/* Children that nobody followed in time, or that were not to be followed. */
static void restore_rest(const struct follow *f)
{
	uint32_t restored = 0, left = 0;

	vec_for_each (&f->members, m) {
		uint32_t still = 0;

		if (m->has_id)
			restored += family_restore(&m->id, 0, &still);
		left += still;
	}
	if (restored && !f->o->quiet)
		printf("restored %u forked processes that were not followed\n", restored);
	if (left)
		fprintf(stderr,
			"memprof: %u forked processes still carry memprof's pages; see: memprof "
			"status\n",
			left);
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
	ret = f.signals < 0 ? -errno : start(&f, &root, pid ? NULL : argv, false);
	if (!ret)
		ret = vec_push(&f.members, root);
	if (ret) {
		fprintf(stderr, "memprof: cannot start a recorder: %s\n", strerror(-ret));
		return MP_EXIT_FAILURE;
	}
	wait_for_all(&f);
	restore_rest(&f);
	close(f.signals);
	vec_free(&f.members);
	vec_free(&f.seen);
	return f.status;
}
