/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends a recording to a receiver (doc/streaming.md): what is written into a pipe is delivered, in order and
 * once, over as many connections as that takes.
 *
 *	sender_open()	connects, before the target is touched
 *	sender_look()	any time
 *	sender_ending()	the target is released: from now on the sender gives up at some time
 *	sender_finish()	waits until all is delivered; after the pipe was closed
 *	sender_free()
 *
 * A thread reads the pipe into a window of a fixed size.  While that is full, it reads nothing, and who
 * writes into the pipe waits, as for a stalled disk.  When the sender gives up, writing fails with EPIPE.
 */
#ifndef STREAM_SENDER_H
#define STREAM_SENDER_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/deadline.h"
#include "lib/err.h"
#include "stream/token.h"
#include "stream/wire.h"

struct sender_config {
	const char *to; /* HOST[:PORT]; NULL: announce, and wait for a receiver that connects */
	const char *token_file;
	uint64_t window; /* bytes that wait for the receiver at most */
	uint64_t
	    deliver_ms; /* for how long nothing is delivered, after sender_ending(), to give up */
	uint8_t id[WIRE_ID];	  /* of the recording */
	char name[WIRE_NAME + 1]; /* of its file at the receiver */
	/* For the announcement */
	uint32_t pid;
	char program[64];
};

struct sender_state {
	bool connected;
	uint64_t taken;	    /* bytes from the pipe */
	uint64_t delivered; /* bytes that the receiver has */
	uint32_t drops;	    /* of the connection */
	char why[200];	    /* why the last connection broke, or why no other could be made */
	bool gave_up;
};

struct sender;

/**
 * sender_open() - connect to the receiver
 * @fd: set to the end of the pipe to write to, owned by the caller
 * With config->to it waits 10 seconds at most.
 * Return: 0 with @out, or a negative errno with @err.
 */
int sender_open(const struct sender_config *config, struct sender **out, int *fd,
		struct mp_err *err);
void sender_look(struct sender *s, struct sender_state *state);
/* Waits until the receiver has the first @bytes.  Return: 0, -ETIMEDOUT, or -EPIPE: the sender gave up. */
int sender_wait(struct sender *s, uint64_t bytes, const struct deadline *deadline);
void sender_ending(struct sender *s);
/* The recording did not begin: has the receiver delete what it has of it.  Before sender_finish(), which then
 * does not fail. */
void sender_cancel(struct sender *s);
/* Return: 0 with everything delivered, or a negative errno with @err.  Every sender_wait() returns soon. */
int sender_finish(struct sender *s, struct mp_err *err);
/* After sender_finish(), when no thread is in another function of @s. */
void sender_free(struct sender *s);

#endif
