/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fleet/recorders.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"
#include "control/notices.h"
#include "control/orders.h"
#include "control/output_name.h"
#include "control/recording.h"
#include "control/takeover.h"
#include "inject/family.h"
#include "lib/open_files.h"
#include "lib/temporary.h"
#include "lib/thread.h"
#include "lib/vec.h"

/* ---------------------------------------------------------- in the recorders' process -- */

/* Of the process. */
struct host {
	const struct recording_options *o;
	const char *dir; /* of recordings that are not kept; "": they are */
	int fd;		 /* to the command */
	/* A process is stopped for a moment when its recording begins; that of one ends before the next one begins. */
	pthread_mutex_t beginning;
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	VEC(struct member *) members;
};

/* A recording, with a thread of its own. */
struct member {
	struct host *host;
	pid_t pid;
	int last_view;
	int quit;	/* an eventfd: the recording ends */
	bool beginning; /* has the lock */
	struct recorders_message end;
};

/* @flags: of send(2). */
static void send_message(const struct host *h, const struct recorders_message *m, int flags)
{
	while (send(h->fd, m, sizeof(*m), MSG_NOSIGNAL | flags) < 0 && errno == EINTR)
		continue;
}

static void over_begin(struct member *m)
{
	if (m->beginning)
		pthread_mutex_unlock(&m->host->beginning);
	m->beginning = false;
}

static void on_message(void *ctx, const char *line)
{
	struct member *m = ctx;
	struct recorders_message said = {.news = RECORDERS_MESSAGE, .pid = m->pid};

	snprintf(said.text, sizeof(said.text), "%s", line);
	/* A command that is stopped must not make the recorder wait. */
	send_message(m->host, &said, MSG_DONTWAIT);
}

static void on_error(void *ctx, const struct mp_err *err)
{
	struct member *m = ctx;

	if (!m->end.text[0])
		snprintf(m->end.text, sizeof(m->end.text), "%s", err->what);
}

static void on_started(void *ctx)
{
	struct member *m = ctx;

	over_begin(m);
	send_message(m->host, &(struct recorders_message){.news = RECORDERS_BEGUN, .pid = m->pid},
		     0);
}

static void on_ended(void *ctx, const struct summary *s)
{
	((struct member *)ctx)->end.reason = s->finish->reason;
}

static int begin_orders(void *ctx)
{
	return ((struct member *)ctx)->quit;
}

static enum recording_order take_order(void *ctx, int fd)
{
	(void)ctx, (void)fd;
	return ORDER_END;
}

static void end_orders(void *ctx, int fd)
{
	(void)ctx, (void)fd; /* the member closes it */
}

/* What is left of an earlier recorder.  Without a recording that was kept, there is nothing to continue.  Return: 0, or a
 * negative errno with @err. */
static int end_earlier(struct member *m, struct target *t, struct mp_err *err)
{
	int ret;

	if (!m->host->dir[0] || !session_is_abandoned(t->pid))
		return family_leave(t, err);
	ret = end_abandoned(t, err);
	if (!ret)
		on_message(m, "its recorder was killed; its profiles begin anew");
	return ret;
}

static int record(struct member *m)
{
	struct notices notices = notices_silent(m);
	const struct recording_orders orders = {
	    .begin = begin_orders, .take = take_order, .end = end_orders, .ctx = m};
	struct recording_options o = *m->host->o;
	struct mp_err err = {0};
	char path[PATH_MAX + 16], pattern[2 * sizeof(path)];
	struct target t;
	int status;

	snprintf(path, sizeof(path), "%s/%d.memprof", m->host->dir, m->pid);
	if (m->host->dir[0]) {
		output_literal(path, pattern, sizeof(pattern));
		o.path = pattern;
		o.debuginfod = DEBUGINFOD_NEVER;
		o.unkept = true;
	}
	notices.message = on_message;
	notices.error = on_error;
	notices.started = on_started;
	notices.ended = on_ended;
	o.notices = &notices;
	o.orders = &orders;
	o.last_view = m->last_view;
	if (target_look(&t, m->pid, &err))
		return notice_error(&notices, &err);
	if (end_earlier(m, &t, &err))
		status = notice_error(&notices, &err);
	else
		status = recording_run(&t, &o, false);
	target_close(&t);
	if (m->host->dir[0])
		unlink(path);
	return status;
}

static void free_member(struct member *m)
{
	close(m->last_view);
	if (m->quit >= 0)
		close(m->quit);
	free(m);
}

static void *member_thread(void *arg)
{
	struct member *m = arg;
	struct host *h = m->host;
	size_t i = 0;

	pthread_mutex_lock(&h->beginning);
	m->beginning = true;
	m->end.status = record(m);
	over_begin(m);
	m->end.news = RECORDERS_ENDED;
	m->end.pid = m->pid;
	send_message(h, &m->end, 0);
	pthread_mutex_lock(&h->lock);
	while (h->members.at[i] != m)
		i++;
	h->members.at[i] = h->members.at[--h->members.n];
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
	free_member(m);
	return NULL;
}

/* Return: 0 or a negative errno. */
static int start_member(struct host *h, struct member *m)
{
	pthread_t thread;
	int ret;

	m->quit = eventfd(0, EFD_CLOEXEC);
	if (m->quit < 0)
		return -errno;
	pthread_mutex_lock(&h->lock);
	ret = vec_push(&h->members, m) ? -ENOMEM : 0;
	if (!ret) {
		ret = thread_start(&thread, member_thread, m);
		h->members.n -= ret != 0;
	}
	pthread_mutex_unlock(&h->lock);
	if (!ret)
		pthread_detach(thread);
	return ret;
}

static void begin_member(struct host *h, pid_t pid, int last_view)
{
	struct recorders_message failed = {
	    .news = RECORDERS_ENDED, .pid = pid, .status = MP_EXIT_FAILURE};
	struct member *m = calloc(1, sizeof(*m));
	int ret = -ENOMEM;

	if (m) {
		*m = (struct member){.host = h, .pid = pid, .last_view = last_view};
		ret = start_member(h, m);
	}
	if (!ret)
		return;
	if (m)
		free_member(m);
	else
		close(last_view);
	snprintf(failed.text, sizeof(failed.text), "cannot start a thread: %s", strerror(-ret));
	send_message(h, &failed, 0);
}

/* Ends all recordings, a few at a time: a process is stopped for a moment at the end of its recording, too, and if all ended
 * at once, one would have to wait for the processors that the others use.  The others are recorded until it is their turn. */
static void end_all(struct host *h)
{
	pthread_mutex_lock(&h->lock);
	while (h->members.n) {
		const size_t some =
		    h->members.n < RECORDERS_ENDING ? h->members.n : RECORDERS_ENDING;

		for (size_t i = 0; i < some; i++)
			eventfd_write(h->members.at[i]->quit, 1);
		pthread_cond_wait(&h->changed, &h->lock);
	}
	pthread_mutex_unlock(&h->lock);
	vec_free(&h->members);
}

/* What the command sends: a process, and the file for its last view. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Return: 1 with @pid and @fd, or 0: the command has ended. */
static int read_order(int socket, pid_t *pid, int *fd)
{
	union control c;
	struct iovec data = {pid, sizeof(*pid)};
	struct msghdr m = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	const struct cmsghdr *h;
	ssize_t n;

	while ((n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		continue;
	h = n == sizeof(*pid) ? CMSG_FIRSTHDR(&m) : NULL;
	if (!h)
		return 0;
	memcpy(fd, CMSG_DATA(h), sizeof(*fd));
	return 1;
}

static void host_run(const struct recording_options *o, const char *dir, int fd)
{
	struct host h = {.o = o, .dir = dir, .fd = fd};
	pid_t pid;
	int view;

	pthread_mutex_init(&h.beginning, NULL);
	pthread_mutex_init(&h.lock, NULL);
	pthread_cond_init(&h.changed, NULL);
	while (read_order(fd, &pid, &view))
		begin_member(&h, pid, view);
	end_all(&h);
	/* The command may have been killed. */
	temporary_remove(dir);
}

/* ------------------------------------------------------------------- in the command -- */

int recorders_start(const struct recording_options *o, struct recorders *r, struct mp_err *err)
{
	int fd[2], ret;

	*r = (struct recorders){.fd = -1};
	ret = o->path ? 0 : temporary_make("memprof-fleet", r->dir, sizeof(r->dir), err);
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make a socket: %s",
			       strerror(errno));
	open_files_raise(); /* a recorded process needs ten in each of the two */
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0) {
		close(fd[0]);
		setsid();
		signal(SIGINT, SIG_IGN);
		host_run(o, r->dir, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (r->pid > 0) {
		r->fd = fd[0];
		return 0;
	}
	close(fd[0]);
	return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot fork: %s", strerror(errno));
}

int recorders_attach(const struct recorders *r, pid_t pid, int last_view)
{
	union control c = {0};
	struct iovec data = {&pid, sizeof(pid)};
	struct msghdr m = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	ssize_t n;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(last_view));
	memcpy(CMSG_DATA(h), &last_view, sizeof(last_view));
	while ((n = sendmsg(r->fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		continue;
	return n < 0 ? -errno : 0;
}

int recorders_read(const struct recorders *r, struct recorders_message *m)
{
	ssize_t n;

	while ((n = recv(r->fd, m, sizeof(*m), MSG_DONTWAIT)) < 0 && errno == EINTR)
		continue;
	if (n == sizeof(*m))
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -ESRCH;
}

int recorders_stop(struct recorders *r)
{
	int status = 0;

	if (r->fd < 0)
		return 0;
	shutdown(r->fd, SHUT_WR);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	close(r->fd);
	r->fd = -1;
	/* The recorders' process has removed it, unless it was killed. */
	temporary_remove(r->dir);
	return WIFEXITED(status) ? 0 : -ESRCH;
}
