/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/smaps.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "attach/proc/procfs.h"

/* "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0    [heap]" */
static int start_usage(const char *line, struct map_usage *u)
{
	unsigned long long start, end;
	char perms[5] = "";
	int path = 0;

	memset(u, 0, sizeof(*u));
	if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %*u%n", &start, &end, perms, &path) < 3 ||
	    !path)
		return -EINVAL;
	path += (int)strspn(line + path, " ");
	u->start = start;
	u->end = end;
	u->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		  (perms[2] == 'x' ? PROT_EXEC : 0);
	u->shared = perms[3] == 's';
	u->path = strndup(line + path, strcspn(line + path, "\n"));
	return u->path ? 0 : -ENOMEM;
}

static int put_usage(struct map_usages *list, struct map_usage *u)
{
	int ret = 0;

	if (u->path && (u->rss || u->swap || u->dontfork || u->hugetlb)) {
		ret = vec_push(&list->list, *u);
		if (!ret)
			u->path = NULL;
	}
	free(u->path);
	u->path = NULL;
	return ret;
}

static bool take_field(const char *line, const char *name, uint64_t *bytes)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) || line[n] != ':')
		return false;
	*bytes = strtoull(line + n + 1, NULL, 10) * 1024;
	return true;
}

/* "VmFlags: rd wr mr mw me dc ac sd".  Mappings of devices have "io" or "pf". */
static bool take_flags(const char *line, struct map_usage *u)
{
	if (strncmp(line, "VmFlags:", 8) != 0)
		return false;
	u->hugetlb = strstr(line, " ht");
	u->dontfork = strstr(line, " dc") && !strstr(line, " io") && !strstr(line, " pf");
	return true;
}

int map_usages_parse(FILE *text, struct map_usages *list)
{
	struct map_usage u = {0};
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	memset(list, 0, sizeof(*list));
	while (!ret && getline(&line, &size, text) > 0) {
		if (isupper((unsigned char)*line)) {
			(void)(take_field(line, "Rss", &u.rss) ||
			       take_field(line, "Anonymous", &u.anonymous) ||
			       take_field(line, "Swap", &u.swap) || take_flags(line, &u));
			continue;
		}
		ret = put_usage(list, &u);
		if (!ret)
			ret = start_usage(line, &u);
	}
	if (!ret)
		ret = put_usage(list, &u);
	free(u.path);
	free(line);
	if (ret)
		map_usages_free(list);
	return ret;
}

int map_usages_read(pid_t pid, struct map_usages *list)
{
	char path[64];
	FILE *f;
	int ret;

	memset(list, 0, sizeof(*list));
	snprintf(path, sizeof(path), "/proc/%d/smaps", proc_of(pid));
	f = fopen(path, "re");
	if (!f)
		return -errno;
	ret = map_usages_parse(f, list);
	fclose(f);
	return ret;
}

void map_usages_free(struct map_usages *list)
{
	vec_for_each (&list->list, u)
		free(u->path);
	vec_free(&list->list);
}
