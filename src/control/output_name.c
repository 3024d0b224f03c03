/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/output_name.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

bool output_pattern_ok(const char *pattern)
{
	for (const char *p = pattern; *p; p++) {
		if (*p == '%' && (!p[1] || !strchr("petn%", *++p)))
			return false;
	}
	return true;
}

/* The command name of @pid, changed so that it is one path component. */
static void command_name(pid_t pid, char name[17])
{
	struct proc_status st;

	snprintf(name, 17, "%s", proc_status_read(pid, 0, &st) ? "unknown" : st.name);
	for (char *p = name; *p; p++) {
		if (*p == '/' || (unsigned char)*p < ' ')
			*p = '_';
	}
	if (*name == '.')
		*name = '_';
}

static size_t expand(char what, pid_t pid, uint32_t count, char *out, size_t size)
{
	time_t now = time(NULL);
	char name[17];
	struct tm tm;
	int n = 0;

	switch (what) {
	case 'p':
		n = snprintf(out, size, "%d", pid);
		break;
	case 'e':
		command_name(pid, name);
		n = snprintf(out, size, "%s", name);
		break;
	case 't':
		return localtime_r(&now, &tm) ? strftime(out, size, "%Y%m%d-%H%M%S", &tm) : 0;
	case 'n':
		n = snprintf(out, size, "%u", count);
		break;
	default:
		n = snprintf(out, size, "%c", what);
	}
	return (size_t)n < size ? (size_t)n : size - 1;
}

/* The start of the last component's suffix. */
static const char *suffix(const char *pattern)
{
	const char *slash = strrchr(pattern, '/'), *dot = strrchr(pattern, '.');

	return dot && dot > pattern && (!slash || dot > slash + 1) ? dot
								   : pattern + strlen(pattern);
}

void output_name(const char *pattern, pid_t pid, uint32_t count, bool again, char *out, size_t size)
{
	bool distinct = strstr(pattern, "%n") || (strstr(pattern, "%p") && !again);
	const char *insert = count && !distinct ? suffix(pattern) : NULL;
	size_t n = 0;

	for (const char *p = pattern; n + 1 < size; p++) {
		if (p == insert)
			n += (size_t)snprintf(out + n, size - n, "-%d-%u", pid, count);
		if (!*p || n + 1 >= size)
			break;
		if (*p == '%' && p[1])
			n += expand(*++p, pid, count, out + n, size - n);
		else
			out[n++] = *p;
	}
	out[n < size ? n : size - 1] = 0;
}

void output_literal(const char *text, char *pattern, size_t size)
{
	size_t n = 0;

	for (; *text && n + 2 < size; text++) {
		if (*text == '%')
			pattern[n++] = '%';
		pattern[n++] = *text;
	}
	pattern[n] = 0;
}

void output_piece_name(const char *name, uint32_t number, char *out, size_t size)
{
	const char *end = suffix(name);

	snprintf(out, size, "%.*s-%u%s", (int)(end - name), name, number, end);
}

void output_absolute(const char *path, char *out, size_t size)
{
	char here[4096];

	if (*path == '/' || !getcwd(here, sizeof(here)))
		snprintf(out, size, "%s", path);
	else
		snprintf(out, size, "%s/%s", here, path);
}
