/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/source_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return: what follows @old in @source, or NULL if @source is not in that folder. */
static const char *behind(const char *source, const char *old, size_t n)
{
	while (n && old[n - 1] == '/')
		n--;
	if (strncmp(source, old, n) != 0 || (source[n] != '/' && source[n]))
		return NULL;
	return source + n;
}

/* Return: @source with the prefix replaced, to be freed by the caller; NULL: it does not apply. */
static char *replaced(const char *source, const char *prefix)
{
	const char *equals = strchr(prefix, '='), *rest;
	size_t n;
	char *path;

	if (!equals)
		return NULL;
	rest = behind(source, prefix, (size_t)(equals - prefix));
	n = strlen(equals + 1);
	while (n && equals[n] == '/')
		n--;
	if (!rest || asprintf(&path, "%.*s%s", (int)n, equals + 1, rest) < 0)
		return NULL;
	return path;
}

/* Is @tail the last parts of the path @path? */
static bool ends_with(const char *path, const char *tail)
{
	size_t n = strlen(path), t = strlen(tail);

	return n >= t && !strcmp(path + n - t, tail) &&
	       (n == t || tail[0] == '/' || path[n - t - 1] == '/');
}

bool source_is(const char *source, const char *wanted, const struct source_prefixes *p)
{
	bool found;

	while (wanted[0] == '.' && wanted[1] == '/')
		wanted += 2;
	found = ends_with(source, wanted) || ends_with(wanted, source);
	for (size_t i = 0; i < p->n && !found; i++) {
		char *path = replaced(source, p->at[i]);

		found = path && ends_with(path, wanted);
		free(path);
	}
	return found;
}

static FILE *open_regular(const char *path, time_t *changed)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	FILE *f;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return NULL;
	}
	*changed = st.st_mtime;
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/* As open_regular(); takes @path, which can be NULL, and gives it to *@opened on success. */
static FILE *try(char *path, char **opened, time_t *changed)
{
	FILE *f = path ? open_regular(path, changed) : NULL;

	if (f)
		*opened = path;
	else
		free(path);
	return f;
}

/* Tries the folder with the whole path, and then with ever fewer of its first parts. */
static FILE *try_folder(const char *folder, const char *source, char **opened, time_t *changed)
{
	FILE *f = NULL;

	while (source && !f) {
		char *path;

		while (*source == '/')
			source++;
		f = try(asprintf(&path, "%s/%s", folder, source) < 0 ? NULL : path, opened,
			changed);
		source = strchr(source, '/');
	}
	return f;
}

FILE *source_open(const char *source, const char *wanted, const struct source_prefixes *p,
		  char **path, time_t *changed)
{
	FILE *f = NULL;

	for (size_t i = 0; i < p->n && !f; i++) {
		if (strchr(p->at[i], '='))
			f = try(replaced(source, p->at[i]), path, changed);
		else
			f = try_folder(p->at[i], source, path, changed);
	}
	if (!f)
		f = try(strdup(source), path, changed);
	if (!f && !p->recorded_only)
		f = try(strdup(wanted), path, changed);
	return f;
}
