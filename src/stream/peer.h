/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One end of a connection: handshake, and frames in both directions.  Its socket does not block.  Not
 * safe for use by several threads at once.
 */
#ifndef STREAM_PEER_H
#define STREAM_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "stream/wire.h"

#define PEER_SILENCE_MS 20000u /* after which a connection is given up */
#define PEER_PING_MS	5000u  /* after which the sender asks for an answer */

enum peer_stage {
	PEER_HELLO,
	PEER_PROOF,
	PEER_READY, /* frames can be sent and received */
};

struct peer {
	int fd;		     /* -1: not connected */
	enum wire_role role; /* of this end */
	enum peer_stage stage;
	const struct token *token;
	uint8_t hellos[2 * WIRE_HELLO];
	struct wire_direction sends, receives;
	struct {
		uint8_t *at;
		size_t begin, end, size;
	} in, out;
	uint64_t heard_ns, spoke_ns; /* mono_ns() */
	const char *why;	     /* why the last function failed */
};

/**
 * peer_begin() - begin the handshake on a connected socket
 * @p: its content is lost
 * @fd: does not block; owned by @p, also if this fails
 * @token: must exist as long as @p
 * Return: 0, or a negative errno.
 */
int peer_begin(struct peer *p, int fd, enum wire_role role, const struct token *token);
/* Closes the connection and frees its memory. */
void peer_end(struct peer *p);

/* Is there anything to send? */
static inline bool peer_has_output(const struct peer *p)
{
	return p->out.begin < p->out.end;
}

/* Sends what the socket takes.  Return: 0, or a negative errno with p->why. */
int peer_send(struct peer *p);
/* Receives what there is, at most a frame, and handles the handshake.  To be called after peer_next() has no
 * more.  Return: 0, or a negative errno
 * with p->why: the other side has closed the connection, or has not the token. */
int peer_receive(struct peer *p);
/**
 * peer_next() - take a frame that was received
 * @f: set; its payload is valid until the next peer_receive()
 * Return: 1, 0: there is none, or -EPROTO with p->why.
 */
int peer_next(struct peer *p, struct wire_frame *f);
/**
 * peer_put() - append a frame to what peer_send() sends
 * @n: bytes of @payload, at most WIRE_PAYLOAD
 * Return: 0, -EAGAIN: peer_send() must send something first, or -ENOMEM.
 */
int peer_put(struct peer *p, enum wire_type type, uint64_t offset, const void *payload, size_t n);
/* Return: 0, or -ETIMEDOUT with p->why: nothing was heard for PEER_SILENCE_MS. */
int peer_alive(struct peer *p);

#endif
