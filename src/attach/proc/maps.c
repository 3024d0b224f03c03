/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "lib/by_number.h"

/* Parses a number in base @base that is followed by @behind, which is skipped.  sscanf() would do,
 * but it measures its input, here the whole rest of the file, in every call. */
static bool take_number(char **at, unsigned int base, char behind, uint64_t *value)
{
	uint64_t v = 0;
	char *p = *at;

	for (;; p++) {
		unsigned int digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned int)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		else
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
	}
	if (p == *at || *p != behind)
		return false;
	*value = v;
	*at = behind ? p + 1 : p;
	return true;
}

static bool take_access(char **at, struct map *m)
{
	const char *p = *at;

	if (strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	m->read = p[0] == 'r';
	m->write = p[1] == 'w';
	m->exec = p[2] == 'x';
	m->shared = p[3] == 's';
	*at += 5;
	return true;
}

/* "7f0c6a1d5000-7f0c6a1d7000 rw-p 001d4000 fd:01 1835  /usr/lib/libc.so.6".  If a mapping has no
 * path, the inode ends the line, with or without a trailing blank. */
static bool parse_line(char *line, struct map *m)
{
	uint64_t major, minor;

	if (!take_number(&line, 16, '-', &m->start) || !take_number(&line, 16, ' ', &m->end) ||
	    !take_access(&line, m) || !take_number(&line, 16, ' ', &m->offset) ||
	    !take_number(&line, 16, ':', &major) || !take_number(&line, 16, ' ', &minor) ||
	    !(take_number(&line, 10, ' ', &m->ino) || take_number(&line, 10, 0, &m->ino)))
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	m->path = line + strspn(line, " ");
	return true;
}

/* Takes ownership of @text and splits it into strings, one per line. */
static int parse_lines(char *text, struct maps *maps)
{
	memset(maps, 0, sizeof(*maps));
	maps->text = text;
	while (*text) {
		char *end = strchrnul(text, '\n');
		bool last = !*end;
		struct map m = {0};
		int ret;

		*end = 0;
		ret = parse_line(text, &m) ? vec_push(&maps->list, m) : -EINVAL;
		if (ret) {
			maps_free(maps);
			return ret;
		}
		text = last ? end : end + 1;
	}
	return 0;
}

int maps_parse(const char *text, struct maps *maps)
{
	char *copy = strdup(text);

	memset(maps, 0, sizeof(*maps));
	return copy ? parse_lines(copy, maps) : -ENOMEM;
}

int maps_read(pid_t pid, struct maps *maps)
{
	char path[64], first, *text;
	int fd, err;

	memset(maps, 0, sizeof(*maps));
	snprintf(path, sizeof(path), "/proc/%d/maps", proc_of(pid));
	fd = proc_open(path);
	if (fd < 0)
		return fd;
	err = proc_slurp(fd, &text, NULL);
	if (!err) {
		/* The file also ends if the process exits.  If its memory still exists after
		 * reading, the file was read completely. */
		if (pread(fd, &first, 1, 0) == 1) {
			err = parse_lines(text, maps);
		} else {
			free(text);
			err = -ESRCH;
		}
	}
	close(fd);
	return err;
}

void maps_free(struct maps *maps)
{
	vec_free(&maps->list);
	free(maps->text);
	maps->text = NULL;
}

const struct map *maps_find(const struct maps *maps, uint64_t addr)
{
	return vec_search(&maps->list, &addr, by_range);
}
