/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends streams through pipes and sockets until the end of stdin.  The writers always wait for
 * their readers.  A call may transfer less than requested, as its manual page permits.  No call may
 * fail, and no byte may be lost, duplicated or changed.  Prints "ok" and how many calls transferred
 * less, or what was wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PERIOD (1u << 20)
#define PIECE  65536
#define LONG_S 1000 /* never reached */

static uint8_t pattern[2 * PERIOD];
static int file;
static atomic_bool over;
static atomic_ulong shorter;

static ssize_t by_write(int fd, uint64_t at, size_t n)
{
	return write(fd, pattern + at % PERIOD, n);
}

static ssize_t by_writev(int fd, uint64_t at, size_t n)
{
	uint8_t *from = pattern + at % PERIOD;
	struct iovec iov[2] = {{from, n / 2}, {from + n / 2, n - n / 2}};

	return writev(fd, iov, 2);
}

static ssize_t by_send(int fd, uint64_t at, size_t n)
{
	return send(fd, pattern + at % PERIOD, n, MSG_NOSIGNAL);
}

static ssize_t by_sendmsg(int fd, uint64_t at, size_t n)
{
	struct iovec iov = {pattern + at % PERIOD, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static ssize_t by_sendfile(int fd, uint64_t at, size_t n)
{
	off_t from = (off_t)(at % PERIOD);
	ssize_t ret = sendfile(fd, file, &from, n);

	if (ret > 0 && (uint64_t)from != at % PERIOD + (uint64_t)ret)
		errno = ERANGE;
	return ret > 0 && (uint64_t)from != at % PERIOD + (uint64_t)ret ? -1 : ret;
}

static ssize_t by_read(int fd, uint8_t *to, size_t n)
{
	return read(fd, to, n);
}

static ssize_t by_recv_all(int fd, uint8_t *to, size_t n)
{
	return recv(fd, to, n, MSG_WAITALL);
}

#if defined(__x86_64__) /* doc/safety.md: elsewhere memprof does not see a partial transfer */
#define PACKET	1000
#define PACKETS 16

/* Slower than its reader, which therefore waits in the middle of a recvmmsg(). */
static ssize_t by_packet(int fd, uint64_t at, size_t n)
{
	usleep(3000);
	return by_send(fd, at, n);
}

static ssize_t by_recvmmsg(int fd, uint8_t *to, size_t n)
{
	struct mmsghdr m[PACKETS] = {0};
	struct iovec iov[PACKETS];
	ssize_t got = 0;
	int ret;

	(void)n;
	for (int i = 0; i < PACKETS; i++) {
		iov[i] = (struct iovec){to + PACKET * i, PACKET};
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	ret = recvmmsg(fd, m, PACKETS, 0, NULL);
	for (int i = 0; i < ret; i++)
		got += m[i].msg_len;
	return ret < 0 ? ret : got;
}
#endif

static struct stream {
	const char *name;
	ssize_t (*put)(int fd, uint64_t at, size_t n);
	ssize_t (*get)(int fd, uint8_t *to, size_t n);
	bool socket, packets;
	size_t n; /* of one call */
	int fd[2];
	pthread_t writer, reader;
	uint64_t wrote;
} streams[] = {
    {.name = "write, pipe", .put = by_write, .get = by_read, .n = PERIOD},
    {.name = "writev, pipe", .put = by_writev, .get = by_read, .n = 3000},
    {.name = "write, socket", .put = by_write, .get = by_read, .socket = true, .n = 1000},
    {.name = "writev, socket", .put = by_writev, .get = by_recv_all, .socket = true, .n = 3000},
    {.name = "send", .put = by_send, .get = by_recv_all, .socket = true, .n = PERIOD},
    {.name = "send, small", .put = by_send, .get = by_read, .socket = true, .n = 1000},
    {.name = "sendmsg", .put = by_sendmsg, .get = by_recv_all, .socket = true, .n = 1000},
    {.name = "sendfile", .put = by_sendfile, .get = by_read, .socket = true, .n = PERIOD},
    {.name = "sendfile, pipe", .put = by_sendfile, .get = by_read, .n = 3000},
#if defined(__x86_64__)
    {.name = "recvmmsg",
     .put = by_packet,
     .get = by_recvmmsg,
     .socket = true,
     .packets = true,
     .n = PACKET},
#endif
};
#define STREAMS (sizeof(streams) / sizeof(streams[0]))

static void fail(const struct stream *s, const char *what)
{
	printf("%s: %s\n", s->name, what);
	fflush(stdout);
	_exit(1);
}

static void *writer(void *arg)
{
	struct stream *s = arg;

	while (!over) {
		ssize_t n = s->put(s->fd[1], s->wrote, s->n);

		if (n <= 0)
			fail(s, n ? strerror(errno) : "nothing was written");
		shorter += (size_t)n < s->n;
		s->wrote += (uint64_t)n;
	}
	close(s->fd[1]);
	return NULL;
}

static void *reader(void *arg)
{
	static _Thread_local uint8_t got[PIECE];
	struct stream *s = arg;
	uint64_t at = 0;
	ssize_t n;

	/* Always slower than the writer, so that the writer waits. */
	while ((n = s->get(s->fd[0], got, sizeof(got))) > 0) {
		if (memcmp(got, pattern + at % PERIOD, (size_t)n))
			fail(s, "other bytes");
		at += (uint64_t)n;
		usleep(2000);
	}
	if (n < 0)
		fail(s, strerror(errno));
	pthread_join(s->writer, NULL);
	if (at != s->wrote)
		fail(s, "another number of bytes");
	return NULL;
}

static void begin(struct stream *s)
{
	struct timeval t = {LONG_S, 0};

	if (s->socket ? socketpair(AF_UNIX, s->packets ? SOCK_SEQPACKET : SOCK_STREAM, 0, s->fd) ||
			    setsockopt(s->fd[1], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) ||
			    setsockopt(s->fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t))
		      : pipe(s->fd))
		fail(s, strerror(errno));
	pthread_create(&s->writer, NULL, writer, s);
	pthread_create(&s->reader, NULL, reader, s);
}

int main(void)
{
	char byte;

	for (size_t i = 0; i < PERIOD; i++)
		pattern[i] = pattern[i + PERIOD] = (uint8_t)(i ^ i >> 7 ^ i >> 13);
	file = memfd_create("streams", 0);
	if (write(file, pattern, sizeof(pattern)) != sizeof(pattern))
		return 3;
	for (size_t i = 0; i < STREAMS; i++)
		begin(&streams[i]);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	over = true;
	for (size_t i = 0; i < STREAMS; i++)
		pthread_join(streams[i].reader, NULL);
	printf("ok %lu\n", (unsigned long)shorter);
	return 0;
}
