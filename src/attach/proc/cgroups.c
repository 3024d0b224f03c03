/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/cgroups.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/namespace.h"
#include "attach/proc/procfs.h"

#define DIGITS	   (CGROUP_CONTAINER - 1u)
#define UID_LENGTH (CGROUP_POD - 1u)

/* Return: 0 or a negative errno. */
static int enter_namespace_of(pid_t pid)
{
	char path[64];
	struct stat own, st;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || stat("/proc/self/ns/cgroup", &own) ||
	    (st.st_ino != own.st_ino && setns(fd, CLONE_NEWCGROUP)))
		ret = -errno;
	close(fd);
	return ret;
}

int cgroups_enter_machine(void)
{
	if (!namespace_is_inner("cgroup"))
		return 0;
	/* A security module can protect process 1; 2 is kthreadd then, which is in the namespace of the machine. */
	return enter_namespace_of(1) ? enter_namespace_of(2) : 0;
}

int cgroups_read(pid_t pid, struct cgroups *c)
{
	char path[64];
	int fd, ret;

	*c = (struct cgroups){0};
	snprintf(path, sizeof(path), "/proc/%d/cgroup", proc_of(pid));
	fd = proc_open(path);
	if (fd < 0)
		return fd;
	ret = proc_slurp(fd, &c->text, NULL);
	close(fd);
	return ret;
}

void cgroups_free(struct cgroups *c)
{
	free(c->text);
	c->text = NULL;
}

bool cgroups_in(const struct cgroups *c, const char *path)
{
	size_t n = strlen(path);

	while (n && path[n - 1] == '/')
		n--;
	for (const char *line = c->text, *next; line && *line; line = next) {
		const size_t length = strcspn(line, "\n");
		const char *colon = memchr(line, ':', length), *of;

		next = line + length + (line[length] == '\n');
		colon = colon ? memchr(colon + 1, ':', length - (size_t)(colon + 1 - line)) : NULL;
		of = colon ? colon + 1 : line + length;
		if ((size_t)(line + length - of) >= n && !strncmp(of, path, n) &&
		    (of + n == line + length || of[n] == '/'))
			return true;
	}
	return false;
}

bool cgroups_container(const struct cgroups *c, char id[CGROUP_CONTAINER])
{
	size_t run = 0;

	for (const char *at = c->text;; at++) {
		if (isxdigit((unsigned char)*at)) {
			run++;
			continue;
		}
		if (run == DIGITS) {
			memcpy(id, at - DIGITS, DIGITS);
			id[DIGITS] = 0;
			return true;
		}
		run = 0;
		if (!*at)
			return false;
	}
}

/* As kubepods/.../pod<uid> or kubepods-...-pod<uid>.slice, whose uid has '_' for '-'. */
bool cgroups_pod(const struct cgroups *c, char uid[CGROUP_POD])
{
	const char *pods = strstr(c->text, "kubepods");

	for (const char *p = pods ? strstr(pods + 8, "pod") : NULL; p; p = strstr(p + 3, "pod")) {
		size_t n = 0;

		for (; n < UID_LENGTH; n++) {
			const char d = p[3 + n] == '_' ? '-' : p[3 + n];

			if (!isxdigit((unsigned char)d) && d != '-')
				break;
			uid[n] = d;
		}
		uid[n] = 0;
		if (n == UID_LENGTH)
			return true;
	}
	return false;
}
