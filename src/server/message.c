/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int message_send(int sock, const char *text, size_t size, int fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = (void *)text, .iov_len = size};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

long message_receive(int sock, char *text, size_t room, int *fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = text, .iov_len = room};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n;
}
