/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 65536

struct hierarchy {
	const char *mount, *limit, *usage, *cache[2];
};

/* Kernel documentation: cgroup-v1/memory, cgroup-v2. */
static const struct hierarchy hierarchy[3] = {
    [1] = {"/sys/fs/cgroup/memory",
	   "memory.limit_in_bytes",
	   "memory.usage_in_bytes",
	   {"total_inactive_file ", "total_active_file "}},
    [2] = {"/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
};

/* Reads a small /proc or cgroup file as a string.  Return: false if it cannot be read. */
static bool slurp(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	return n > 0;
}

/* The rest of the line that begins with @name, or NULL. */
static const char *line(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		if (!strncmp(p, name, n))
			return p + n;
	}
	return NULL;
}

uint64_t limits_parse(const char *text, const char *name)
{
	const char *p = line(text, name);

	if (!p)
		return NO_LIMIT;
	p += strspn(p, " ");
	return *p >= '0' && *p <= '9' ? strtoull(p, NULL, 10) : NO_LIMIT;
}

int limits_cgroup(const char *text, char *path, size_t size)
{
	int version = 0;

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		const char *name = strchr(p, ':'), *at = name ? strchr(name + 1, ':') : NULL;
		int n = at ? (int)strcspn(at + 1, "\n") : 0;
		bool first = !strncmp(name ? name : "", ":memory:", 8);

		if (!at || at > p + strcspn(p, "\n") || (size_t)n >= size ||
		    (!first && (strncmp(p, "0::", 3) || version)))
			continue;
		snprintf(path, size, "%.*s", n, at + 1);
		version = first ? 1 : 2;
	}
	return version;
}

static uint64_t number_in(const char *folder, const char *file)
{
	char path[512], text[64];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (!slurp(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return NO_LIMIT;
	return strtoull(text, NULL, 10);
}

/* Bytes that are left in one cgroup. */
static uint64_t left_in(const struct hierarchy *h, const char *folder)
{
	uint64_t limit = number_in(folder, h->limit), usage = number_in(folder, h->usage);
	char path[512], text[8192];

	if (limit == NO_LIMIT || usage == NO_LIMIT || limit >= INT64_MAX / 2)
		return NO_LIMIT;
	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	for (int i = 0; i < 2 && slurp(path, text, sizeof(text)); i++) {
		const char *p = line(text, h->cache[i]);
		uint64_t cache = p ? strtoull(p, NULL, 10) : 0;

		usage -= cache < usage ? cache : usage;
	}
	return usage < limit ? limit - usage : 0;
}

static void read_cgroup(pid_t pid, struct limits *l)
{
	char path[64], text[4096], own[4096], folder[384], mine[256], theirs[256];
	const struct hierarchy *h;
	int version;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!slurp(path, text, sizeof(text)))
		return;
	version = limits_cgroup(text, theirs, sizeof(theirs));
	if (!version)
		return;
	l->shared_cgroup = slurp("/proc/self/cgroup", own, sizeof(own)) &&
			   limits_cgroup(own, mine, sizeof(mine)) == version &&
			   !strcmp(mine, theirs);
	h = &hierarchy[version];
	/* The limits of all cgroups up to the root apply. */
	for (char *end = theirs + strlen(theirs); end > theirs + 1; end = strrchr(theirs, '/')) {
		uint64_t left;

		*end = 0;
		snprintf(folder, sizeof(folder), "%s%s", h->mount, theirs);
		left = left_in(h, folder);
		if (left < l->cgroup) {
			l->cgroup = left;
			snprintf(l->cgroup_path, sizeof(l->cgroup_path), "%.255s", theirs);
		}
		if (!strrchr(theirs, '/'))
			break;
	}
}

int limits_read(pid_t pid, struct limits *l)
{
	char path[64], *text = malloc(TEXT);
	uint64_t limit, used;
	int ret = 0;

	*l = (struct limits){.address_space = NO_LIMIT, .cgroup = NO_LIMIT};
	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	if (!slurp(path, text, TEXT))
		ret = -ESRCH;
	limit = ret ? NO_LIMIT : limits_parse(text, "Max address space");
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!ret && limit != NO_LIMIT && slurp(path, text, TEXT)) {
		used = limits_parse(text, "VmSize:\t") * 1024;
		l->address_space = used < limit ? limit - used : 0;
	}
	if (!ret)
		read_cgroup(pid, l);
	free(text);
	return ret;
}

uint64_t limits_machine(void)
{
	char text[8192];
	uint64_t kb = NO_LIMIT;

	if (slurp("/proc/meminfo", text, sizeof(text)))
		kb = limits_parse(text, "MemAvailable:");
	return kb == NO_LIMIT ? kb : kb * 1024;
}
