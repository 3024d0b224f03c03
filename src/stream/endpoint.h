/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Addresses: of the receiver, to connect to; of this machine, to listen at. */
#ifndef STREAM_ENDPOINT_H
#define STREAM_ENDPOINT_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "lib/err.h"

#define ENDPOINT_PORT 9743u
#define ENDPOINT_TEXT 80 /* of an address and a port */

union endpoint {
	struct sockaddr any;
	struct sockaddr_storage room;
};

/**
 * endpoint_resolve() - find the addresses of HOST[:PORT], [IPV6]:PORT or an address
 * @list: set, for freeaddrinfo()
 * Return: 0, or a negative errno with @err.
 */
int endpoint_resolve(const char *text, struct addrinfo **list, struct mp_err *err);
/**
 * endpoint_listen() - listen at [ADDR:]PORT; without ADDR at all addresses of this machine
 * @fd: set to a socket that does not block
 * @at: set to the address, with the port that it got if it was 0
 * Return: 0, or a negative errno with @err.
 */
int endpoint_listen(const char *text, int *fd, char at[ENDPOINT_TEXT], struct mp_err *err);
/* Writes ADDR:PORT.  Return: @text. */
const char *endpoint_text(const struct sockaddr *a, char text[ENDPOINT_TEXT]);
/* Is it an address of this machine, or of a network that this machine is connected to directly? */
bool endpoint_is_local(const struct sockaddr *a);
/* Begins to connect without waiting.  Return: a socket that does not block, or a negative errno. */
int endpoint_connect(const struct sockaddr *a, socklen_t size);
/* Return: 0 if the connection that endpoint_connect() began was made, or a negative errno. */
int endpoint_connected(int fd);
/* Accepts a connection.  @from: its other end.  Return: a socket that does not block, or a negative errno. */
int endpoint_accept(int fd, union endpoint *from);

#endif
