/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/deadline.h"

#define FRAME_MAX ((size_t)WIRE_HEAD + WIRE_PAYLOAD + WIRE_CODE)
#define OUT_MAX	  (2 * FRAME_MAX)
#define FIRST	  256u /* bytes of a buffer before the token is proven */

static int fail(struct peer *p, int code, const char *why)
{
	p->why = why;
	return code;
}

static uint8_t *hello_of(struct peer *p, enum wire_role role)
{
	return p->hellos + (role == WIRE_SENDER ? 0 : WIRE_HELLO);
}

static enum wire_role other(const struct peer *p)
{
	return p->role == WIRE_SENDER ? WIRE_RECEIVER : WIRE_SENDER;
}

/* Makes room for @n bytes after the content of a buffer.  Return: 0 or -ENOMEM. */
static int make_room(uint8_t **at, size_t *begin, size_t *end, size_t *size, size_t n)
{
	if (*begin) {
		memmove(*at, *at + *begin, *end - *begin);
		*end -= *begin;
		*begin = 0;
	}
	if (*size - *end < n) {
		size_t want = *end + n > FIRST ? *end + n : FIRST;
		uint8_t *more = realloc(*at, want);

		if (!more)
			return -ENOMEM;
		*at = more;
		*size = want;
	}
	return 0;
}

#define MAKE_ROOM(b, n) make_room(&(b)->at, &(b)->begin, &(b)->end, &(b)->size, n)

static int put_bytes(struct peer *p, const void *bytes, size_t n)
{
	if (MAKE_ROOM(&p->out, n))
		return fail(p, -ENOMEM, "out of memory");
	memcpy(p->out.at + p->out.end, bytes, n);
	p->out.end += n;
	return 0;
}

int peer_begin(struct peer *p, int fd, enum wire_role role, const struct token *token)
{
	int ret;

	*p = (struct peer){.fd = fd, .role = role, .token = token};
	p->heard_ns = p->spoke_ns = mono_ns();
	ret = wire_hello(role, hello_of(p, role));
	if (ret)
		return fail(p, ret, "no random numbers");
	return put_bytes(p, hello_of(p, role), WIRE_HELLO);
}

void peer_end(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->in.at);
	free(p->out.at);
	*p = (struct peer){.fd = -1};
}

int peer_send(struct peer *p)
{
	while (peer_has_output(p)) {
		ssize_t n = send(p->fd, p->out.at + p->out.begin, p->out.end - p->out.begin,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return fail(p, -errno, strerror(errno));
		p->out.begin += (size_t)n;
		p->spoke_ns = mono_ns();
	}
	p->out.begin = p->out.end = 0;
	return 0;
}

static int put_proof(struct peer *p)
{
	uint8_t proof[WIRE_PROOF];

	wire_proof(p->token, p->role, p->hellos, proof);
	return put_bytes(p, proof, sizeof(proof));
}

static int hear_hello(struct peer *p)
{
	memcpy(hello_of(p, other(p)), p->in.at + p->in.begin, WIRE_HELLO);
	if (!wire_hello_ok(other(p), hello_of(p, other(p))))
		return fail(p, -EPROTO, "it does not speak memprof's protocol, or another version");
	p->in.begin += WIRE_HELLO;
	p->stage = PEER_PROOF;
	wire_direction_begin(&p->sends, p->token, p->role, p->hellos);
	wire_direction_begin(&p->receives, p->token, other(p), p->hellos);
	/* The receiver sends its proof only to a sender that has proven the token. */
	return p->role == WIRE_SENDER ? put_proof(p) : 0;
}

static int hear_proof(struct peer *p)
{
	uint8_t proof[WIRE_PROOF];

	wire_proof(p->token, other(p), p->hellos, proof);
	if (!wire_equal(proof, p->in.at + p->in.begin, WIRE_PROOF))
		return fail(p, -EACCES, "it has another token");
	p->in.begin += WIRE_PROOF;
	p->stage = PEER_READY;
	return p->role == WIRE_RECEIVER ? put_proof(p) : 0;
}

static int handshake(struct peer *p)
{
	int ret = 0;

	if (p->stage == PEER_HELLO && p->in.end - p->in.begin >= WIRE_HELLO)
		ret = hear_hello(p);
	if (!ret && p->stage == PEER_PROOF && p->in.end - p->in.begin >= WIRE_PROOF)
		ret = hear_proof(p);
	return ret;
}

int peer_receive(struct peer *p)
{
	size_t have = p->in.end - p->in.begin;
	size_t want = (p->stage == PEER_READY ? FRAME_MAX : FIRST) - have;
	ssize_t n;

	if (MAKE_ROOM(&p->in, want))
		return fail(p, -ENOMEM, "out of memory");
	n = recv(p->fd, p->in.at + p->in.end, want, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return fail(p, -errno, strerror(errno));
	if (!n && p->stage == PEER_PROOF && p->role == WIRE_SENDER)
		return fail(p, -EACCES, "it closed the connection: has it another token?");
	if (!n)
		return fail(p, -ECONNRESET, "the other side closed the connection");
	p->in.end += (size_t)n;
	p->heard_ns = mono_ns();
	return handshake(p);
}

static bool may_come(const struct peer *p, uint32_t type)
{
	return p->role == WIRE_RECEIVER ? type >= WIRE_OPEN && type <= WIRE_CANCEL
					: type >= WIRE_ACK && type <= WIRE_FAIL;
}

int peer_next(struct peer *p, struct wire_frame *f)
{
	int n;

	if (p->stage != PEER_READY)
		return 0;
	n = wire_get(&p->receives, p->in.at + p->in.begin, p->in.end - p->in.begin, f);
	if (n < 0 || (n && !may_come(p, f->type)))
		return fail(p, -EPROTO, "it sent a frame that is not valid");
	p->in.begin += (size_t)n;
	return n > 0;
}

int peer_put(struct peer *p, enum wire_type type, uint64_t offset, const void *payload, size_t n)
{
	size_t bytes = WIRE_HEAD + n + WIRE_CODE;

	if (p->out.end - p->out.begin + bytes > OUT_MAX)
		return -EAGAIN;
	if (MAKE_ROOM(&p->out, bytes))
		return fail(p, -ENOMEM, "out of memory");
	p->out.end += wire_put(&p->sends, p->out.at + p->out.end, type, offset, payload, n);
	return 0;
}

int peer_alive(struct peer *p)
{
	if (mono_ns() - p->heard_ns < PEER_SILENCE_MS * 1000000ull)
		return 0;
	return fail(p, -ETIMEDOUT, "nothing was heard for 20 seconds");
}
