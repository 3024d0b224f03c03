/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/beacon.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "MEMPROF!"

/* Every byte is sent, so there is none between the fields.  Numbers are little-endian. */
struct datagram {
	char magic[8];
	uint8_t version[4], pid[4], port[2], zero[2];
	uint8_t id[WIRE_ID];
	char name[64];
};
_Static_assert(sizeof(struct datagram) == 100, "no padding");

static int udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int beacon_open(void)
{
	int fd = udp(), one = 1;

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
	return fd;
}

/* Return: the broadcast address of the network; on the loopback network, which has no broadcasts, the
 * address of this machine. */
static struct sockaddr_in target_of(const struct ifaddrs *i)
{
	struct sockaddr_in to;

	memcpy(&to, i->ifa_flags & IFF_LOOPBACK ? i->ifa_addr : i->ifa_broadaddr, sizeof(to));
	to.sin_port = htons(BEACON_PORT);
	return to;
}

static bool can_announce(const struct ifaddrs *i)
{
	return i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
	       (i->ifa_flags & IFF_LOOPBACK || (i->ifa_flags & IFF_BROADCAST && i->ifa_broadaddr));
}

void beacon_send(int fd, const struct beacon *b)
{
	struct datagram d = {.version = {1}};
	struct ifaddrs *list;

	memcpy(d.magic, MAGIC, sizeof(d.magic));
	memcpy(d.id, b->id, sizeof(d.id));
	memcpy(d.name, b->name, strnlen(b->name, sizeof(d.name)));
	for (unsigned int i = 0; i < 4; i++)
		d.pid[i] = (uint8_t)(b->pid >> 8 * i);
	for (unsigned int i = 0; i < 2; i++)
		d.port[i] = (uint8_t)(b->port >> 8 * i);
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct sockaddr_in to;

		if (!can_announce(i))
			continue;
		to = target_of(i);
		(void)sendto(fd, &d, sizeof(d), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	}
	freeifaddrs(list);
}

int beacon_listen(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(BEACON_PORT)};
	int fd = udp(), one = 1;

	if (fd < 0)
		return fd;
	/* Several receivers of one machine receive what is broadcast. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return fd;
	one = -errno;
	close(fd);
	return one;
}

int beacon_hear(int fd, struct beacon *b, union endpoint *from)
{
	socklen_t size = sizeof(*from);
	struct datagram d;
	ssize_t n = recvfrom(fd, &d, sizeof(d), MSG_DONTWAIT, &from->any, &size);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*b = (struct beacon){.port = (uint16_t)(d.port[0] | d.port[1] << 8)};
	if (n != (ssize_t)sizeof(d) || memcmp(d.magic, MAGIC, sizeof(d.magic)) ||
	    d.version[0] != 1 || !b->port || !endpoint_is_local(&from->any))
		return 0;
	memcpy(b->id, d.id, sizeof(b->id));
	memcpy(b->name, d.name, sizeof(b->name) - 1);
	for (unsigned int i = 0; i < 4; i++)
		b->pid |= (uint32_t)d.pid[i] << 8 * i;
	((struct sockaddr_in *)&from->any)->sin_port = htons(b->port);
	return 1;
}
