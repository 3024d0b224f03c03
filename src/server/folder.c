/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file system's clock can be this coarse: a folder that has just changed can change again unseen. */
#define COARSE_S 3

struct candidate {
	size_t file; /* index in folder->files */
	struct timespec written;
};

int folder_open(const char *path, struct folder *f)
{
	struct stat st;

	*f = (struct folder){.path = realpath(path, NULL)};
	if (!f->path)
		return -errno;
	if (!stat(f->path, &st) && S_ISDIR(st.st_mode))
		return 0;
	folder_close(f);
	return -ENOTDIR;
}

void folder_close(struct folder *f)
{
	vec_for_each (&f->files, file)
		free(file->name);
	vec_free(&f->files);
	free(f->path);
	f->path = NULL;
}

static bool path_of(const struct folder *f, const char *name, char path[PATH_MAX])
{
	return (size_t)snprintf(path, PATH_MAX, "%s/%s", f->path, name) < PATH_MAX;
}

static bool is_known(const struct folder *f, const struct recordings *r, const char *name)
{
	char path[PATH_MAX];

	if (!path_of(f, name, path))
		return true;
	vec_for_each (&f->files, file) {
		if (!strcmp(file->name, name))
			return true;
	}
	vec_for_each (&r->at, one) {
		if (!strcmp(one->path, path))
			return true;
	}
	return false;
}

static void read_names(struct folder *f, const struct recordings *r)
{
	DIR *d = opendir(f->path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct folder_file file = {.tried = 0};

		if (*e->d_name == '.' || is_known(f, r, e->d_name))
			continue;
		file.name = strdup(e->d_name);
		if (file.name && vec_push(&f->files, file))
			free(file.name);
	}
	if (d)
		closedir(d);
}

static bool has_changed(struct folder *f)
{
	struct stat st;
	bool same;

	if (stat(f->path, &st))
		return false;
	same = st.st_mtim.tv_sec == f->changed.tv_sec && st.st_mtim.tv_nsec == f->changed.tv_nsec;
	if (same && time(NULL) - st.st_mtim.tv_sec > COARSE_S)
		return false;
	f->changed = st.st_mtim;
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct timespec *x = &((const struct candidate *)a)->written,
			      *y = &((const struct candidate *)b)->written;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void forget(struct folder *f, size_t i)
{
	free(f->files.at[i].name);
	f->files.at[i].name = NULL;
}

/* Files that have not been tried with this size.  Forgets those that are gone. */
static struct candidate *candidates(struct folder *f, size_t *n)
{
	struct candidate *all = calloc(f->files.n + 1, sizeof(*all));

	*n = 0;
	for (size_t i = 0; all && i < f->files.n; i++) {
		char path[PATH_MAX];
		struct stat st;

		if (!path_of(f, f->files.at[i].name, path) || stat(path, &st)) {
			forget(f, i);
			continue;
		}
		if (!S_ISREG(st.st_mode) || st.st_size == f->files.at[i].tried)
			continue;
		f->files.at[i].tried = st.st_size;
		all[(*n)++] = (struct candidate){i, st.st_mtim};
	}
	return all;
}

static void drop_forgotten(struct folder *f)
{
	size_t n = 0;

	vec_for_each (&f->files, file) {
		if (file->name)
			f->files.at[n++] = *file;
	}
	f->files.n = n;
}

void folder_look(struct folder *f, struct recordings *r)
{
	struct candidate *all;
	size_t n;

	if (has_changed(f))
		read_names(f, r);
	all = candidates(f, &n);
	if (n)
		qsort(all, n, sizeof(*all), by_time);
	for (size_t i = 0; i < n; i++) {
		struct mp_err err;
		char path[PATH_MAX];
		bool known;

		if (path_of(f, f->files.at[all[i].file].name, path) &&
		    !recordings_add(r, path, &known, &err) && !known)
			forget(f, all[i].file);
	}
	free(all);
	drop_forgotten(f);
}
