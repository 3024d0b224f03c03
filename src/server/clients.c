/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/clients.h"

#include <stdlib.h>
#include <sys/socket.h>
#include "lib/deadline.h"

#define PATIENCE_NS	  20000000000ull
#define SHORT_PATIENCE_NS 2000000000ull

struct client *clients_add(struct clients *c, int fd)
{
	struct client *one = calloc(1, sizeof(*one));

	if (!one || vec_push(&c->at, one)) {
		free(one);
		return NULL;
	}
	one->fd = fd;
	one->since = mono_ns();
	return one;
}

void clients_remove(struct clients *c, struct client *one)
{
	for (size_t i = 0; i < c->at.n; i++) {
		if (c->at.at[i] == one)
			c->at.at[i] = c->at.at[--c->at.n];
	}
	free(one);
	if (!c->at.n)
		vec_free(&c->at);
}

void client_busy(struct client *one, bool busy)
{
	one->busy = busy;
	one->since = mono_ns();
}

/* libmicrohttpd 0.9.75 does not notice the end of a connection that came together with bytes. */
static bool has_left(const struct client *one)
{
	char byte;

	return recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void clients_tick(struct clients *c)
{
	uint64_t now = mono_ns(),
		 patience = c->at.n > c->most / 2 ? SHORT_PATIENCE_NS : PATIENCE_NS;

	vec_for_each (&c->at, one) {
		if (!(*one)->busy && (now - (*one)->since > patience || has_left(*one)))
			(void)shutdown((*one)->fd, SHUT_RDWR);
	}
}
