/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the server and its workers send each other, through a socket that keeps messages apart. */
#ifndef SERVER_MESSAGE_H
#define SERVER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include "server/query.h"

/* To a worker: a path and a query, each ended by a NUL, with the pipe for the answer. */
#define MESSAGE_MOST_PATH 4096u
#define MESSAGE_MOST	  (MESSAGE_MOST_PATH + QUERY_MOST_BYTES + 2u)

enum reply_kind {
	REPLY_HEAD, /* the answer begins; its bytes follow in the pipe */
	REPLY_DONE, /* all bytes are in the pipe, and the pipe is closed */
	REPLY_STREAM, /* as REPLY_HEAD; bytes follow until the pipe is closed, and the worker is idle */
	REPLY_FAILED, /* the answer is incomplete */
};

/* To the server. */
struct reply {
	uint32_t kind;
	uint32_t status; /* REPLY_HEAD: HTTP status */
	char type[64];	 /* REPLY_HEAD: Content-Type */
};

/* Sends a request with a descriptor.  @text: @size bytes.  Return: 0 or a negative errno. */
int message_send(int sock, const char *text, size_t size, int fd);
/* Receives one.  Return: its size, 0 when the other side has closed the socket, or a negative errno;
 * @fd: set to the descriptor, to be closed; -1: none came. */
long message_receive(int sock, char *text, size_t room, int *fd);

#endif
