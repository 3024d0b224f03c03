/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse_address(const char *interface, uint16_t port, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (!strcmp(interface, "localhost"))
		interface = "127.0.0.1";
	if (inet_pton(AF_INET, interface, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		return true;
	}
	if (inet_pton(AF_INET6, interface, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(port);
		return true;
	}
	return false;
}

static bool is_loopback(const union address *a)
{
	return a->any.sa_family == AF_INET ? ntohl(a->v4.sin_addr.s_addr) >> 24 == 127
					   : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static void describe(const union address *a, struct listener *l)
{
	char text[INET6_ADDRSTRLEN] = "";
	bool v4 = a->any.sa_family == AF_INET;

	inet_ntop(a->any.sa_family,
		  v4 ? (const void *)&a->v4.sin_addr : (const void *)&a->v6.sin6_addr, text,
		  sizeof(text));
	l->port = ntohs(v4 ? a->v4.sin_port : a->v6.sin6_port);
	snprintf(l->url, sizeof(l->url), v4 ? "http://%s:%u" : "http://[%s]:%u", text, l->port);
}

int listen_open(const char *interface, uint16_t port, struct listener *l, struct mp_err *err)
{
	union address a;
	socklen_t size = sizeof(a);
	int one = 1;

	if (!parse_address(interface, port, &a))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--interface: '%.100s' is no IPv4 or IPv6 address of this machine",
			       interface);
	l->loopback = is_loopback(&a);
	l->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "no socket: %s", strerror(errno));
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l->fd, &a.any, a.any.sa_family == AF_INET ? sizeof(a.v4) : sizeof(a.v6)) ||
	    listen(l->fd, BACKLOG) || getsockname(l->fd, &a.any, &size)) {
		int code = -errno;

		close(l->fd);
		return mp_fail(err, MP_EXIT_FAILURE, code, "cannot listen at %.60s, port %u: %s%s",
			       interface, port, strerror(-code),
			       code == -EADDRINUSE ? "; --port N chooses another" : "");
	}
	describe(&a, l);
	return 0;
}
