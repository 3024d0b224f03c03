/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of libc that load shared libraries.  The static memprof has these instead: a library of
 * the machine it runs on was made for another libc.  The linker warns if another such function is
 * used, and packaging/rules.mk makes that an error.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>

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
