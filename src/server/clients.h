/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The connections, and how long each may take to send its next request.  A client that sends its
 * header byte by byte (slow loris) or nothing at all loses its connection; sooner when many are
 * connected.
 */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"

struct client {
	int fd;
	bool busy;	/* a request is complete and its answer is not */
	uint64_t since; /* when it began to be not busy */
};

struct clients {
	VEC(struct client *) at;
	uint32_t most;
};

/* Return: the client, or NULL when out of memory.  @fd: of its connection, which another owns. */
struct client *clients_add(struct clients *c, int fd);
void clients_remove(struct clients *c, struct client *one);
/* Tells that its request is complete, or that it was answered. */
void client_busy(struct client *one, bool busy);
/* Shuts the connections down that have waited too long, or whose clients have closed their sides. */
void clients_tick(struct clients *c);

#endif
