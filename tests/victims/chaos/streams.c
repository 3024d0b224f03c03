/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Streams in which the writer waits for the reader, and the reader for the writer: no byte may be
 * lost or duplicated. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "chaos.h"

#define PERIOD	65536
#define LENGTH	(3 * PERIOD + 1234) /* of a stream */
#define PACKETS 100

struct stream {
	struct actor *a;
	const struct kind *kind;
	int fd[2], file, between[2];
};

static struct kind {
	const char *name;
	bool socket;
	ssize_t (*put)(struct stream *s, size_t at, size_t n);
	ssize_t (*get)(struct stream *s, uint8_t *to, size_t n);
} const kinds[];

static uint8_t pattern[2 * PERIOD];

static ssize_t by_write(struct stream *s, size_t at, size_t n)
{
	return write(s->fd[1], pattern + at % PERIOD, n < PERIOD ? n : PERIOD);
}

static ssize_t by_writev(struct stream *s, size_t at, size_t n)
{
	struct iovec iov[2] = {{pattern + at % PERIOD, n < 1000 ? n : 1000}, {NULL, 0}};

	iov[1].iov_base = (uint8_t *)iov[0].iov_base + iov[0].iov_len;
	iov[1].iov_len = n - iov[0].iov_len < 3000 ? n - iov[0].iov_len : 3000;
	return writev(s->fd[1], iov, 2);
}

static ssize_t by_send(struct stream *s, size_t at, size_t n)
{
	return send(s->fd[1], pattern + at % PERIOD, n < PERIOD ? n : PERIOD, MSG_NOSIGNAL);
}

static ssize_t by_sendfile(struct stream *s, size_t at, size_t n)
{
	off_t from = (off_t)(at % PERIOD);
	ssize_t ret = sendfile(s->fd[1], s->file, &from, n < PERIOD ? n : PERIOD);

	must(s->a, ret < 0 || (size_t)from == at % PERIOD + (size_t)ret,
	     "sendfile: expected the offset to tell what was sent");
	return ret;
}

/* Uses a pipe in between.  All bytes that were put into the pipe must come out of it. */
static ssize_t by_splice(struct stream *s, size_t at, size_t n)
{
	loff_t from = (loff_t)(at % PERIOD);
	ssize_t in =
		    splice(s->file, &from, s->between[1], NULL, n < PERIOD / 4 ? n : PERIOD / 4, 0),
		out;

	for (ssize_t left = in; left > 0; left -= out) {
		out = splice(s->between[0], NULL, s->fd[1], NULL, (size_t)left, 0);
		if (out <= 0)
			return out;
	}
	return in;
}

static ssize_t by_read(struct stream *s, uint8_t *to, size_t n)
{
	return read(s->fd[0], to, n);
}

static ssize_t by_readv(struct stream *s, uint8_t *to, size_t n)
{
	struct iovec iov[2] = {{to, 10}, {to + 10, n - 10}};

	return readv(s->fd[0], iov, 2);
}

static ssize_t by_recv_all(struct stream *s, uint8_t *to, size_t n)
{
	return recv(s->fd[0], to, n, MSG_WAITALL);
}

static struct kind const kinds[] = {{"write", false, by_write, by_read},
				    {"writev", false, by_writev, by_readv},
				    {"sendfile", false, by_sendfile, by_read},
				    {"splice", false, by_splice, by_read},
				    {"send", true, by_send, by_recv_all},
				    {"write, socket", true, by_write, by_read},
				    {"sendfile, socket", true, by_sendfile, by_recv_all}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *put_stream(void *arg)
{
	struct stream *s = arg;

	for (size_t at = 0; at < LENGTH;) {
		ssize_t n = s->kind->put(s, at, LENGTH - at);

		if (was_cut_off(s->a, n))
			continue;
		if (!must(s->a, n > 0, "%s: expected some bytes, got %s", s->kind->name,
			  strerror(errno)))
			break;
		at += (size_t)n;
		if (at % 7 == 0)
			pause_us(500);
	}
	close(s->fd[1]);
	return NULL;
}

static void get_stream(struct stream *s)
{
	static _Thread_local uint8_t got[10000];
	size_t at = 0;
	ssize_t n;

	while ((n = s->kind->get(s, got, sizeof(got))) || at < LENGTH) {
		if (was_cut_off(s->a, n))
			continue;
		if (!must(s->a, n > 0, "%s: expected some bytes at %zu, got %s", s->kind->name, at,
			  n ? strerror(errno) : "the end") ||
		    !must(s->a,
			  at + (size_t)n <= LENGTH &&
			      !memcmp(got, pattern + at % PERIOD, (size_t)n),
			  "%s: expected its bytes at %zu, got others", s->kind->name, at))
			break;
		at += (size_t)n;
		pause_us(1500);
	}
}

/* @timed: give a socket a timeout, which is not reached: then the kernel ends interrupted calls
 * with EINTR. */
static void one_stream(struct actor *a, const struct kind *kind, bool timed)
{
	struct stream s = {.a = a, .kind = kind, .file = memfd_create("chaos", MFD_CLOEXEC)};
	struct timeval t = {1000, 0};
	pthread_t th;

	if (s.file < 0 || write(s.file, pattern, sizeof(pattern)) != sizeof(pattern) ||
	    pipe(s.between) ||
	    (kind->socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, s.fd) : pipe(s.fd)))
		give_up("stream");
	if (kind->socket && timed) {
		setsockopt(s.fd[1], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
		setsockopt(s.fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	}
	th = begin(put_stream, &s);
	get_stream(&s);
	close(s.fd[0]);
	pthread_join(th, NULL);
	close(s.file);
	close(s.between[0]);
	close(s.between[1]);
}

static void streams_round(struct actor *a)
{
	static atomic_uint next;

	one_stream(a, &kinds[next++ % KINDS], false);
}

static void timed_round(struct actor *a)
{
	static atomic_uint next;
	const struct kind *kind;

	do {
		kind = &kinds[next++ % KINDS];
	} while (!kind->socket);
	one_stream(a, kind, true);
}

static void *put_packets(void *arg)
{
	struct stream *s = arg;

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t packet[3] = {i, i * i, ~i};

		must(s->a, send(s->fd[1], packet, sizeof(packet), MSG_NOSIGNAL) == sizeof(packet),
		     "send: expected %zu bytes, got %s", sizeof(packet), strerror(errno));
		pause_us(500);
	}
	close(s->fd[1]);
	return NULL;
}

/* Only x86-64 uses recvmmsg(): elsewhere an interruption can stay as the socket's error
 * (doc/safety.md). */
static void packets_round(struct actor *a)
{
	struct stream s = {.a = a};
	uint32_t got[8][3], next = 0;
	struct mmsghdr m[8];
	struct iovec iov[8];
	pthread_t th;
	int n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s.fd))
		give_up("socketpair");
	th = begin(put_packets, &s);
	while (next < PACKETS) {
#if defined(__x86_64__)
		memset(m, 0, sizeof(m));
		for (int i = 0; i < 8; i++) {
			iov[i] = (struct iovec){got[i], sizeof(got[i])};
			m[i].msg_hdr.msg_iov = &iov[i];
			m[i].msg_hdr.msg_iovlen = 1;
		}
		n = recvmmsg(s.fd[0], m, 8, 0, NULL);
#else
		(void)iov;
		m[0].msg_len = 12;
		n = recv(s.fd[0], got[0], sizeof(got[0]), 0) == 12 ? 1 : -1;
#endif
		if (was_cut_off(a, n))
			continue;
		if (!must(a, n > 0, "recvmmsg: expected packets, got %s",
			  n ? strerror(errno) : "none"))
			break;
		for (int i = 0; i < n && next < PACKETS && m[i].msg_len; i++, next++)
			must(a, m[i].msg_len == 12 && got[i][0] == next && got[i][2] == ~next,
			     "recvmmsg: expected packet %u, got %u of %u bytes", next, got[i][0],
			     m[i].msg_len);
	}
	close(s.fd[0]);
	pthread_join(th, NULL);
}

void streams_prepare(void)
{
	for (int i = 0; i < PERIOD; i++)
		pattern[i] = pattern[i + PERIOD] = (uint8_t)(i ^ i >> 7);
}

struct actor streams[] = {
    {.name = "streams",
     .round = streams_round,
     .guaranteed = "write(), writev(), send(), sendfile(), splice(), read(), readv(), "
		   "recv(MSG_WAITALL) may do "
		   "less than asked, none fails; every byte comes once and in order"},
    {.name = "timed-streams",
     .round = timed_round,
     .cut_off = true,
     .guaranteed = "sockets with SO_RCVTIMEO and SO_SNDTIMEO: the same",
     .but = "kill -9: EINTR"},
    {.name = "packets",
     .round = packets_round,
     .cut_off = true,
     .guaranteed = "recvmmsg() may give fewer, never fails; every packet comes once and in order",
     .but = "kill -9: EINTR, or the kernel's own 512"},
    {0}};
