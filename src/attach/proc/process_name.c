/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/process_name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "lib/path.h"

static bool first_argument_is(pid_t pid, const char *name)
{
	char path[64], text[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = proc_open(path);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return !strcmp(path_base(text), name);
}

static bool executable_is(pid_t pid, const char *name)
{
	static const char deleted[] = " (deleted)";
	char exe[4096];
	size_t n;

	if (proc_exe(pid, exe, sizeof(exe)))
		return false;
	n = strlen(exe);
	if (n >= sizeof(deleted) && !strcmp(exe + n - sizeof(deleted) + 1, deleted))
		exe[n - sizeof(deleted) + 1] = 0;
	return !strcmp(path_base(exe), name);
}

bool process_has_name(pid_t pid, const char *name)
{
	struct proc_status st;

	return !proc_status_read(pid, 0, &st) && st.state != 'Z' && st.state != 'X' &&
	       (!strcmp(st.name, name) || first_argument_is(pid, name) || executable_is(pid, name));
}
