/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/kernel_roots.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

/* Reads the hexadecimal number that follows @before after @mark, in each line of a /proc file. */
static int read_words(struct kernel_roots *k, const char *path, const char *mark,
		      const char *before)
{
	FILE *f = fopen(path, "re");
	char line[512];
	int ret = 0;

	while (f && !ret && fgets(line, sizeof(line), f)) {
		const char *p = strstr(line, mark);
		uint64_t word;

		p = p ? strstr(p, before) : NULL;
		word = p ? strtoull(p + strlen(before), NULL, 16) : 0;
		if (word)
			ret = vec_push(&k->words, word);
	}
	if (f)
		fclose(f);
	return ret;
}

static int read_epolls(struct kernel_roots *k, pid_t pid)
{
	char path[64], target[64], info[384];
	struct dirent *e;
	int ret = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", proc_of(pid));
	d = opendir(path);
	while (d && !ret && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "anon_inode:[eventpoll]") != 0)
			continue;
		snprintf(info, sizeof(info), "/proc/%d/fdinfo/%s", proc_of(pid), e->d_name);
		ret = read_words(k, info, "tfd:", "data:");
	}
	if (d)
		closedir(d);
	return ret;
}

int kernel_roots_read(struct kernel_roots *k, pid_t pid)
{
	char path[64];
	int ret;

	/* The format of these lines is in fs/eventpoll.c and fs/proc/base.c. */
	memset(k, 0, sizeof(*k));
	ret = read_epolls(k, pid);
	snprintf(path, sizeof(path), "/proc/%d/timers", proc_of(pid));
	return ret ? ret : read_words(k, path, "signal:", "/");
}
