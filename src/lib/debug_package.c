/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/debug_package.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	       256u /* files that are asked for */
#define SOME_NOT_FOUND 1    /* exit status of dpkg-query; more: it failed */

/* /usr/lib and /lib are one folder since Debian 12, but packages have either name. */
static const char *other_name(const char *path)
{
	return !strncmp(path, "/usr/", 5) ? path + 4 : NULL;
}

/* Would dpkg-query take @path for a pattern? */
static bool is_pattern(const char *path)
{
	return path[0] != '/' || strpbrk(path, "*?[\\");
}

static void add_paths(char **argv, const struct package_query *q, size_t n)
{
	for (size_t i = 0; i < n && i < MOST; i++) {
		if (is_pattern(q[i].path))
			continue;
		*argv++ = (char *)q[i].path;
		if (other_name(q[i].path))
			*argv++ = (char *)other_name(q[i].path);
	}
	*argv = NULL;
}

/* Starts dpkg-query.  Return: 0 with @out, a descriptor with what it prints; or a negative errno. */
static int start_query(char **argv, pid_t *pid, int *out)
{
	char *env[] = {(char[]){"LC_ALL=C"}, (char[]){"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, NULL};
	posix_spawn_file_actions_t actions;
	int pipes[2], ret;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	ret = posix_spawn(pid, "/usr/bin/dpkg-query", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (ret) {
		close(pipes[0]);
		return -ret;
	}
	*out = pipes[0];
	return 0;
}

/* Takes a line of dpkg-query: "libc6:amd64, libc6:i386: /lib/ld.so". */
static void take_line(char *line, struct package_query *q, size_t n)
{
	char *path = strstr(line, ": /");

	if (!path || !strncmp(line, "diversion by ", strlen("diversion by ")))
		return;
	path += 2;
	path[strcspn(path, "\n")] = 0;
	for (size_t i = 0; i < n; i++) {
		const char *other = other_name(q[i].path);

		if (!*q[i].owner && (!strcmp(q[i].path, path) || (other && !strcmp(other, path))))
			snprintf(q[i].owner, sizeof(q[i].owner), "%.*s", (int)strcspn(line, ":,"),
				 line);
	}
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return SOME_NOT_FOUND + 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : SOME_NOT_FOUND + 1;
}

bool packages_find(struct package_query *q, size_t n)
{
	char *argv[4 + 2 * MOST] = {(char[]){"dpkg-query"}, (char[]){"--search"}, (char[]){"--"}};
	char *line = NULL;
	size_t size = 0;
	pid_t pid = 0;
	FILE *f;
	int out = -1;

	for (size_t i = 0; i < n; i++)
		q[i].owner[0] = 0;
	add_paths(argv + 3, q, n);
	if (start_query(argv, &pid, &out))
		return false;
	f = fdopen(out, "r");
	if (!f)
		close(out);
	while (f && getline(&line, &size, f) > 0)
		take_line(line, q, n);
	free(line);
	if (f)
		fclose(f);
	return wait_for(pid) <= SOME_NOT_FOUND;
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
