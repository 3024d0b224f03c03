/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bytes of the protocol by which recordings are sent over the network: doc/streaming.md. */
#ifndef STREAM_WIRE_H
#define STREAM_WIRE_H

#include <nettle/hmac.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "stream/token.h"

#define WIRE_HELLO   48u
#define WIRE_PROOF   32u
#define WIRE_HEAD    20u
#define WIRE_CODE    16u
#define WIRE_PAYLOAD 65536u /* the most of a frame */
#define WIRE_ID	     16u    /* bytes of a recording's id */
#define WIRE_NAME    200u   /* the most of a file's name */

enum wire_role {
	WIRE_SENDER,
	WIRE_RECEIVER,
};

enum wire_type {
	WIRE_OPEN = 1,
	WIRE_DATA = 2,
	WIRE_END = 3,
	WIRE_PING = 4,
	WIRE_CANCEL = 5,
	WIRE_ACK = 16,
	WIRE_DONE = 17,
	WIRE_FAIL = 18,
};

struct wire_frame {
	uint32_t type, length, number;
	uint64_t offset;
	const uint8_t *payload;
};

/* One direction of a connection. */
struct wire_direction {
	struct hmac_sha256_ctx code;
	uint32_t number; /* of the next frame */
};

/* Makes the hello of @role.  Return: 0, or a negative errno: no random numbers. */
int wire_hello(enum wire_role role, uint8_t hello[WIRE_HELLO]);
/* Is this a hello of @role, of a version that is known? */
bool wire_hello_ok(enum wire_role role, const uint8_t hello[WIRE_HELLO]);
/* Makes the proof of @role.  @hellos: the sender's and the receiver's. */
void wire_proof(const struct token *token, enum wire_role role,
		const uint8_t hellos[2 * WIRE_HELLO], uint8_t proof[WIRE_PROOF]);
/* Compares in a time that does not depend on where they differ. */
bool wire_equal(const uint8_t *a, const uint8_t *b, size_t n);
/* Prepares the frames that @role sends. */
void wire_direction_begin(struct wire_direction *d, const struct token *token, enum wire_role role,
			  const uint8_t hellos[2 * WIRE_HELLO]);

/**
 * wire_put() - write the next frame of a direction
 * @out: room for WIRE_HEAD + @n + WIRE_CODE bytes
 * @payload: @n bytes, at most WIRE_PAYLOAD
 * Return: the number of bytes written.
 */
size_t wire_put(struct wire_direction *d, uint8_t *out, enum wire_type type, uint64_t offset,
		const void *payload, size_t n);
/**
 * wire_get() - read the next frame of a direction
 * @in: @n bytes that were received
 * @frame: set; its payload is in @in
 * Return: the bytes of the frame; 0: more are needed, @frame->length is then set if the head is there, and
 * else 0; or -EPROTO: a payload that is too long, a wrong number or a wrong code.
 */
int wire_get(struct wire_direction *d, const uint8_t *in, size_t n, struct wire_frame *frame);

#endif
