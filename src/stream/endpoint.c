/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 512

/* Splits "HOST:PORT", "[V6]:PORT", "HOST", "V6" or, with @port_only, "PORT".  Return: false: not such a
 * text. */
static bool split(const char *text, bool port_only, char host[256], char port[8])
{
	const char *colon = strrchr(text, ':');
	bool bracket = *text == '[', v6 = !bracket && colon && strchr(text, ':') != colon;
	const char *end = bracket ? strchr(text, ']') : v6 || !colon ? text + strlen(text) : colon;
	const char *p = NULL;

	if (!end)
		return false;
	if (port_only && !colon) {
		p = text;
		end = text;
	} else if (bracket && end[1]) {
		p = end[1] == ':' ? end + 2 : "";
	} else if (colon && !v6 && !bracket) {
		p = colon + 1;
	}
	text += bracket;
	if ((size_t)(end - text) >= 256 ||
	    (p && (!*p || strlen(p) > 5 || p[strspn(p, "0123456789")])))
		return false;
	snprintf(host, 256, "%.*s", (int)(end - text), text);
	snprintf(port, 8, "%s", p ? p : "");
	return atoi(port) <= UINT16_MAX;
}

static int lookup(const char *host, const char *port, int flags, struct addrinfo **list)
{
	const struct addrinfo hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	char usual[8];

	snprintf(usual, sizeof(usual), "%u", ENDPOINT_PORT);
	return getaddrinfo(host, *port ? port : usual, &hints, list);
}

int endpoint_resolve(const char *text, struct addrinfo **list, struct mp_err *err)
{
	char host[256], port[8];
	int ret;

	if (!split(text, false, host, port) || !*host || (*port && !atoi(port)))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "'%.200s' is not HOST or HOST:PORT",
			       text);
	ret = lookup(host, port, 0, list);
	if (ret)
		return mp_fail(err, MP_EXIT_OUTPUT, -EHOSTUNREACH, "cannot find %.200s: %s", host,
			       gai_strerror(ret));
	return 0;
}

const char *endpoint_text(const struct sockaddr *a, char text[ENDPOINT_TEXT])
{
	char addr[INET6_ADDRSTRLEN] = "?";
	uint16_t port;

	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a;

		inet_ntop(AF_INET, &v4->sin_addr, addr, sizeof(addr));
		port = ntohs(v4->sin_port);
	} else {
		const struct sockaddr_in6 *v6 = (const void *)a;

		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, addr, sizeof(addr));
		else
			inet_ntop(AF_INET6, &v6->sin6_addr, addr, sizeof(addr));
		port = ntohs(v6->sin6_port);
	}
	snprintf(text, ENDPOINT_TEXT, strchr(addr, ':') ? "[%s]:%u" : "%s:%u", addr, port);
	return text;
}

static int bound(const struct addrinfo *a)
{
	int one = 1, off = 0;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		int code = -errno;

		close(fd);
		return code;
	}
	return fd;
}

/* Of IPv6, which takes IPv4 as well; if this machine has no IPv6, of IPv4. */
static int bound_to_all(const char *port)
{
	const char *const any[] = {"::", "0.0.0.0"};
	int fd = -EAFNOSUPPORT;

	for (unsigned int i = 0; i < 2 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL); i++) {
		struct addrinfo *list;

		if (lookup(any[i], port, AI_PASSIVE | AI_NUMERICHOST, &list))
			continue;
		fd = bound(list);
		freeaddrinfo(list);
	}
	return fd;
}

int endpoint_listen(const char *text, int *fd, char at[ENDPOINT_TEXT], struct mp_err *err)
{
	char host[256], port[8];
	struct addrinfo *list;
	union endpoint a = {0};
	socklen_t size = sizeof(a);

	if (!split(text, true, host, port))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "'%.200s' is not a port or an address of this machine", text);
	if (!*host) {
		*fd = bound_to_all(port);
	} else if (lookup(host, port, AI_PASSIVE, &list)) {
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "'%.200s' is not an address of this machine", host);
	} else {
		*fd = bound(list);
		freeaddrinfo(list);
	}
	if (*fd < 0)
		return mp_fail(err, MP_EXIT_FAILURE, *fd, "cannot listen at %.200s: %s", text,
			       strerror(-*fd));
	if (getsockname(*fd, &a.any, &size)) {
		int code = -errno;

		close(*fd);
		return mp_fail(err, MP_EXIT_FAILURE, code, "%s", strerror(-code));
	}
	endpoint_text(&a.any, at);
	return 0;
}

static bool same_net(const uint8_t *a, const uint8_t *b, const uint8_t *mask, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((a[i] ^ b[i]) & mask[i])
			return false;
	}
	return true;
}

static bool in_net(const struct sockaddr *a, const struct ifaddrs *i)
{
	if (!i->ifa_addr || !i->ifa_netmask || i->ifa_addr->sa_family != a->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return same_net((const void *)&((const struct sockaddr_in *)a)->sin_addr,
				(const void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr,
				(const void *)&((struct sockaddr_in *)i->ifa_netmask)->sin_addr, 4);
	return same_net((const void *)&((const struct sockaddr_in6 *)a)->sin6_addr,
			(const void *)&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr,
			(const void *)&((struct sockaddr_in6 *)i->ifa_netmask)->sin6_addr, 16);
}

/* An IPv4 address as IPv4, also if a socket of IPv6 reports it. */
static union endpoint unmapped(const struct sockaddr *a)
{
	const struct sockaddr_in6 *v6 = (const void *)a;
	union endpoint out = {0};

	if (a->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&out, a,
		       a->sa_family == AF_INET6 ? sizeof(*v6) : sizeof(struct sockaddr_in));
		return out;
	}
	out.any.sa_family = AF_INET;
	memcpy(&((struct sockaddr_in *)&out.any)->sin_addr, v6->sin6_addr.s6_addr + 12, 4);
	return out;
}

bool endpoint_is_local(const struct sockaddr *a)
{
	union endpoint real = unmapped(a);
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
		found = in_net(&real.any, i);
	freeifaddrs(list);
	return found;
}

/* Frames are put together before they are sent: waiting for more would only delay them. */
static int without_delay(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int endpoint_connect(const struct sockaddr *a, socklen_t size)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, a, size) && errno != EINPROGRESS) {
		int code = -errno;

		close(fd);
		return code;
	}
	return without_delay(fd);
}

int endpoint_connected(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? -errno : -error;
}

int endpoint_accept(int fd, union endpoint *from)
{
	socklen_t size = sizeof(*from);
	int got = accept4(fd, &from->any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return got < 0 ? -errno : without_delay(got);
}
