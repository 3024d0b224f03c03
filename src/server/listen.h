/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The socket on which the server waits for clients. */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

struct listener {
	int fd;
	uint16_t port;
	bool loopback; /* only programs of this machine can connect */
	char url[80];  /* http://ADDRESS:PORT */
};

/**
 * listen_open() - bind and listen
 * @interface: an IPv4 or IPv6 address, or localhost
 * @port: 0: any that is free
 *
 * Return: 0 with @l (its fd to be closed), or a negative errno with @err.
 */
int listen_open(const char *interface, uint16_t port, struct listener *l, struct mp_err *err);

#endif
