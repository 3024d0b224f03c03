/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/kernel/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define GROUP "memprof"

static int private_mount(void)
{
	int fs = fsopen("tracefs", FSOPEN_CLOEXEC), fd;

	if (fs < 0)
		return -errno;
	fd =
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) ? -1 : fsmount(fs, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	close(fs);
	return fd;
}

static int open_mounted(void)
{
	static const char *const path[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		int fd = open(path[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && !faccessat(fd, "uprobe_events", W_OK, 0))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

static int command(int fs, const char *line)
{
	int fd = openat(fs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, line, strlen(line)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Removes the points of dead recorders.  A point's name contains its recorder's process id. */
static void remove_stale(int fs)
{
	int fd = openat(fs, "uprobe_events", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[4096], stale[64];
	int pid, number;

	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*c:" GROUP "/p%d_%d ", &pid, &number) != 2 || pid <= 0 ||
		    !kill(pid, 0) || errno != ESRCH)
			continue;
		snprintf(stale, sizeof(stale), "-:" GROUP "/p%d_%d\n", pid, number);
		command(fs, stale);
	}
	fclose(f);
}

static int open_any(void)
{
	int fs = private_mount();

	return fs < 0 ? open_mounted() : fs;
}

bool tracefs_has_uprobes(void)
{
	int fs = open_any();
	bool has = fs >= 0 && !faccessat(fs, "uprobe_events", W_OK, 0);

	if (fs >= 0)
		close(fs);
	return has;
}

int tracefs_open(void)
{
	int fs = open_any();

	if (fs >= 0)
		remove_stale(fs);
	return fs;
}

int tracefs_add(int fs, uint32_t *number, const char *path, uint64_t offset, bool at_return)
{
	static uint32_t next;
	char line[4200], text[16];
	int ret, fd;
	ssize_t n;

	*number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	snprintf(line, sizeof(line), "%c:" GROUP "/p%d_%u %s:0x%llx\n", at_return ? 'r' : 'p',
		 getpid(), *number, path, (unsigned long long)offset);
	ret = command(fs, line);
	if (ret)
		return ret;
	snprintf(line, sizeof(line), "events/" GROUP "/p%d_%u/id", getpid(), *number);
	fd = openat(fs, line, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	ret = n > 0 ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	if (ret) {
		tracefs_remove(fs, *number);
		return ret;
	}
	text[n] = 0;
	return atoi(text);
}

void tracefs_remove(int fs, uint32_t number)
{
	char line[64];

	snprintf(line, sizeof(line), "-:" GROUP "/p%d_%u\n", getpid(), number);
	command(fs, line);
}
