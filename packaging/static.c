/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of libc that load shared libraries.  The static memprof has these instead: a library of
 * the machine it runs on was made for another libc.  The linker warns if another such function is
 * used, and packaging/rules.mk makes that an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libdw would load libdebuginfod.  libc uses its own dlopen() under another name: the option --wrap makes
 * this the one of all others. */
void *__wrap_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags)
{
	(void)file, (void)flags;
	return NULL;
}

/* Users that /etc/passwd does not have are unknown. */
struct passwd *getpwuid(uid_t uid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *user = NULL;

	if (!f)
		return NULL;
	do
		user = fgetpwent(f);
	while (user && user->pw_uid != uid);
	fclose(f);
	return user;
}

/* libcap-ng has a function that calls this; memprof does not call that function. */
int initgroups(const char *user, gid_t group)
{
	(void)user, (void)group;
	errno = ENOSYS;
	return -1;
}

/* No names are looked up, but that of this machine itself. */
static int take_address(const char *node, uint16_t port, struct addrinfo *a)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)a->ai_addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a->ai_addr;

	if (inet_pton(AF_INET, strcmp(node, "localhost") != 0 ? node : "127.0.0.1",
		      &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		a->ai_addrlen = sizeof(*v4);
	} else {
		memset(v6, 0, sizeof(*v6));
		if (inet_pton(AF_INET6, node, &v6->sin6_addr) != 1)
			return EAI_NONAME;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		a->ai_addrlen = sizeof(*v6);
	}
	a->ai_family = a->ai_addr->sa_family;
	return 0;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **list)
{
	struct addrinfo *a = calloc(1, sizeof(*a) + sizeof(struct sockaddr_in6));
	int ret;

	if (!a)
		return EAI_MEMORY;
	a->ai_addr = (struct sockaddr *)(a + 1);
	a->ai_socktype = hints->ai_socktype;
	ret = take_address(node, htons((uint16_t)atoi(service)), a);
	if (ret)
		free(a);
	else
		*list = a;
	return ret;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

const char *gai_strerror(int code)
{
	return code == EAI_MEMORY ? "out of memory"
				  : "the static memprof looks up no names; give its address";
}
