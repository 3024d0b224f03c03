/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/control.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/privileges.h"
#include "lib/thread.h"

#define REQUEST	  1024 /* maximum bytes of a request */
#define PATIENCE  2    /* timeout in seconds for the caller to send or receive a line */
#define BACKLOG	  64
#define FORBIDDEN "!forbidden"

struct control {
	int fd;
	bool stop;
	pthread_t thread;
	void (*serve)(void *ctx, const char *line, struct control_answer *answer);
	void *ctx;
};

static socklen_t address(struct sockaddr_un *a, const char *name)
{
	size_t n = strnlen(name, CONTROL_NAME - 1);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, n); /* the leading NUL makes the name abstract */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static bool peer(int fd, struct ucred *who)
{
	socklen_t n = sizeof(*who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &n) && n == sizeof(*who);
}

/* Reads a part of a line.  @passed: set to a descriptor that came with it.  Return: as recvmsg(). */
static ssize_t read_some(int fd, char *text, size_t size, int *passed)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec to = {text, size};
	struct msghdr m = {.msg_iov = &to, .msg_iovlen = 1};
	const struct cmsghdr *c;
	ssize_t got;

	/* Without room for it, the kernel drops a descriptor that is not expected. */
	if (passed && *passed < 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
	}
	got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (passed && c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(passed, CMSG_DATA(c), sizeof(*passed));
	return got;
}

/* Reads up to the end of the line or of the connection.  @passed: as for read_some(); NULL: none is
 * expected.  Return: the length, or -errno. */
static int read_line(int fd, char *line, size_t size, int *passed)
{
	size_t n = 0;

	while (n < size - 1) {
		ssize_t got = read_some(fd, line + n, size - 1 - n, passed);
		char *end;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		n += (size_t)got;
		line[n] = 0;
		end = strchr(line, '\n');
		if (end) {
			*end = 0;
			return (int)(end - line);
		}
	}
	line[n] = 0;
	return (int)n;
}

/* Sends the line, and with its first byte a descriptor; @passed: -1: none. */
static int write_line(int fd, const char *line, int passed)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	char text[CONTROL_ANSWER + 1];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	memcpy(CMSG_DATA(&control.head), &passed, sizeof(passed));
	for (int at = 0; at < n;) {
		struct iovec rest = {text + at, (size_t)(n - at)};
		struct msghdr m = {.msg_iov = &rest, .msg_iovlen = 1};
		ssize_t put;

		if (!at && passed >= 0) {
			m.msg_control = control.room;
			m.msg_controllen = sizeof(control.room);
		}
		put = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		at += (int)put;
	}
	return 0;
}

static void serve_one(struct control *c, int fd)
{
	struct timeval patience = {.tv_sec = PATIENCE};
	struct control_answer answer = {.fd = -1};
	char line[REQUEST];
	struct ucred who;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!peer(fd, &who) || (who.uid != geteuid() && who.uid != 0)) {
		write_line(fd, FORBIDDEN, -1);
		return;
	}
	if (read_line(fd, line, sizeof(line), NULL) <= 0)
		return;
	c->serve(c->ctx, line, &answer);
	write_line(fd, answer.text, answer.fd);
	if (answer.fd >= 0)
		close(answer.fd);
}

static void *serve_requests(void *arg)
{
	struct control *c = arg;

	privileges_keep(PRIVILEGES_TARGET);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			serve_one(c, fd);
			close(fd);
		} else if (errno != EINTR && errno != ECONNABORTED && errno != EINVAL) {
			usleep(100000); /* out of descriptors: try again later */
		}
	}
	return NULL;
}

int control_open(char name[CONTROL_NAME],
		 void (*serve)(void *ctx, const char *line, struct control_answer *answer),
		 void *ctx, struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));
	struct sockaddr_un at;
	uint64_t random[2];
	int ret = 0;

	if (!c)
		return -ENOMEM;
	c->serve = serve;
	c->ctx = ctx;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		ret = -EIO;
	snprintf(name, CONTROL_NAME, "memprof-%015llx%016llx", (unsigned long long)random[0] >> 4,
		 (unsigned long long)random[1]);
	c->fd = ret ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!ret && (c->fd < 0 || bind(c->fd, (struct sockaddr *)&at, address(&at, name)) ||
		     listen(c->fd, BACKLOG)))
		ret = -errno;
	if (!ret)
		ret = thread_start(&c->thread, serve_requests, c);
	if (ret) {
		if (c->fd >= 0)
			close(c->fd);
		free(c);
		return ret;
	}
	*out = c;
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	__atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	close(c->fd);
	free(c);
}

int control_ask(const char *name, pid_t pid, const char *line, char answer[CONTROL_ANSWER],
		int *passed)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;
	struct sockaddr_un at;
	struct ucred who;

	if (passed)
		*passed = -1;
	if (fd < 0)
		return -errno;
	ret = connect(fd, (struct sockaddr *)&at, address(&at, name)) ? -errno : 0;
	if (!ret && (!peer(fd, &who) || who.pid != pid))
		ret = -EPERM;
	if (!ret)
		ret = write_line(fd, line, -1);
	if (!ret || ret == -EPIPE) /* the recorder can refuse before it reads the request */
		ret = read_line(fd, answer, CONTROL_ANSWER, passed);
	close(fd);
	if (ret > 0 && strcmp(answer, FORBIDDEN) != 0)
		return 0;
	if (passed && *passed >= 0) {
		close(*passed);
		*passed = -1;
	}
	if (ret < 0)
		return ret;
	return ret ? -EACCES : -ECONNRESET; /* the recorder ended before it answered */
}
