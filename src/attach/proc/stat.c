/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST 4

static int parse_stat(const char *text, struct proc_stat *st)
{
	/* The name can contain anything. */
	const char *p = strrchr(text, ')');
	char *end;

	if (!p || strlen(p) < 4)
		return -EINVAL;
	st->state = p[2];
	p += 3;
	for (int i = FIRST; i < STAT_FIELDS; i++) {
		st->field[i] = strtoull(p, &end, 10);
		if (end == p)
			return -EINVAL;
		p = end;
	}
	return 0;
}

int proc_stat_read(pid_t pid, struct proc_stat *st)
{
	char path[64], text[1024];
	size_t n = 0;
	FILE *f;

	memset(st, 0, sizeof(*st));
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	return n ? parse_stat(text, st) : -ESRCH;
}

uint64_t proc_stat_age_ms(const struct proc_stat *st)
{
	uint64_t born_ms = st->field[STAT_START] * 1000 / (uint64_t)sysconf(_SC_CLK_TCK), now_ms;
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	return now_ms > born_ms ? now_ms - born_ms : 0;
}
