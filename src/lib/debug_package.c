/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/debug_package.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".list"

/* A list has one path in each line; the first is "/.". */
static bool lists(const char *list, size_t size, const char *path)
{
	char line[4096];
	int n = snprintf(line, sizeof(line), "\n%s\n", path);

	return n > 0 && (size_t)n < sizeof(line) && memmem(list, size, line, (size_t)n);
}

/* /usr/lib and /lib are one folder since Debian 12, but packages have either name. */
static bool lists_any_name(const char *list, size_t size, const char *path)
{
	return lists(list, size, path) ||
	       (!strncmp(path, "/usr/", 5) && lists(list, size, path + 4));
}

static bool has_suffix(const char *name)
{
	size_t n = strlen(name);

	return n > strlen(SUFFIX) && !strcmp(name + n - strlen(SUFFIX), SUFFIX);
}

/* @name: "libc6:amd64.list" or "redis-tools.list" */
static void search(const char *name, const char *list, size_t size, struct package_query *q,
		   size_t n)
{
	size_t length = strcspn(name, ":");

	if (!name[length])
		length -= strlen(SUFFIX);
	for (size_t i = 0; i < n; i++) {
		if (!*q[i].owner && lists_any_name(list, size, q[i].path))
			snprintf(q[i].owner, sizeof(q[i].owner), "%.*s", (int)length, name);
	}
}

static void search_file(int folder, const char *name, struct package_query *q, size_t n)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *list = NULL;
	struct stat st;
	ssize_t size;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		list = malloc((size_t)st.st_size + 1);
	size = list ? read(fd, list, (size_t)st.st_size) : 0;
	if (size > 0)
		search(name, list, (size_t)size, q, n);
	free(list);
	close(fd);
}

bool packages_find(const char *folder, struct package_query *q, size_t n)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	for (size_t i = 0; i < n; i++)
		q[i].owner[0] = 0;
	if (!d)
		return false;
	while (n && (e = readdir(d))) {
		if (has_suffix(e->d_name))
			search_file(dirfd(d), e->d_name, q, n);
	}
	closedir(d);
	return true;
}

const char *package_with_debug(const char *owner, char *buf, size_t size)
{
	snprintf(buf, size, "%.80s%s", owner, strcmp(owner, "libc6") != 0 ? "-dbgsym" : "-dbg");
	return buf;
}

bool packages_are_rpm(void)
{
	return !access("/usr/lib/sysimage/rpm", F_OK) || !access("/var/lib/rpm", F_OK);
}
