/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fleet/container.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#define LEAST_DIGITS 12u
#define MOST_BYTES   (16 << 20)

struct search {
	const char *name;
	char *id; /* of the first one that was found */
	uint32_t found;
};

static bool is_id(const char *text)
{
	const size_t n = strspn(text, "0123456789abcdef");

	return !text[n] && n >= LEAST_DIGITS && n < CONTAINER_ID;
}

static void take_id(struct search *s, const char *id)
{
	if (!is_id(id) || (s->found && !strcmp(s->id, id)))
		return;
	if (!s->found++)
		snprintf(s->id, CONTAINER_ID, "%s", id);
}

static const char *text_at(yajl_val v, const char *const *path)
{
	const yajl_val found = yajl_tree_get(v, (const char **)path, yajl_t_string);

	return found ? YAJL_GET_STRING(found) : NULL;
}

/* config.v2.json in a folder with the container's id: {"ID": "...", "Name": "/shop"}. */
static void of_docker(struct search *s, const char *file, yajl_val v)
{
	static const char *const id[] = {"ID", NULL}, *const name[] = {"Name", NULL};
	const char *called = text_at(v, name), *digits = text_at(v, id);

	(void)file;
	if (called && digits && !strcmp(called + (*called == '/'), s->name))
		take_id(s, digits);
}

/* containers.json: [{"id": "...", "names": ["shop"]}]. */
static void of_podman(struct search *s, const char *file, yajl_val v)
{
	static const char *const id[] = {"id", NULL}, *const names[] = {"names", NULL};

	(void)file;
	for (size_t i = 0; YAJL_IS_ARRAY(v) && i < v->u.array.len; i++) {
		const yajl_val c = v->u.array.values[i],
			       list = yajl_tree_get(c, (const char **)names, yajl_t_array);
		const char *digits = text_at(c, id);

		for (size_t k = 0; digits && list && k < list->u.array.len; k++) {
			const char *name = YAJL_GET_STRING(list->u.array.values[k]);

			if (name && !strcmp(name, s->name))
				take_id(s, digits);
		}
	}
}

/* config.json in a folder that has the container's id as its name. */
static void of_containerd(struct search *s, const char *file, yajl_val v)
{
	static const char *const name[] = {"annotations", "io.kubernetes.cri.container-name", NULL};
	const char *called = text_at(v, name);
	char folder[CONTAINER_ID + 1] = "";
	const char *end = strrchr(file, '/'), *begin = end;

	while (begin > file && begin[-1] != '/')
		begin--;
	if (called && !strcmp(called, s->name) && (size_t)(end - begin) < sizeof(folder)) {
		memcpy(folder, begin, (size_t)(end - begin));
		take_id(s, folder);
	}
}

/* Users can write some of the files: anything may be there.  Return: the text, to be freed, or NULL. */
static char *read_text(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	char *text = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES)
		text = malloc((size_t)st.st_size + 1);
	if (text)
		n = pread(fd, text, (size_t)st.st_size, 0);
	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

static void read_file(struct search *s, const char *file,
		      void (*of)(struct search *s, const char *file, yajl_val v))
{
	char *text = read_text(file);
	yajl_val v;

	if (!text)
		return;
	v = yajl_tree_parse(text, NULL, 0);
	if (v)
		of(s, file, v);
	yajl_tree_free(v);
	free(text);
}

static const struct engine {
	const char *files;
	void (*of)(struct search *s, const char *file, yajl_val v);
} engines[] = {
    {"/var/lib/docker/containers/*/config.v2.json", of_docker},
    {"/var/lib/containers/storage/*-containers/containers.json", of_podman},
    {"/home/*/.local/share/containers/storage/*-containers/containers.json", of_podman},
    {"/run/containerd/io.containerd.runtime.v2.task/*/*/config.json", of_containerd},
};

static void search_in(struct search *s, const char *root)
{
	char pattern[4096];
	glob_t g;

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		snprintf(pattern, sizeof(pattern), "%s%s", root, engines[i].files);
		if (glob(pattern, GLOB_NOSORT, NULL, &g))
			continue;
		for (size_t k = 0; k < g.gl_pathc; k++)
			read_file(s, g.gl_pathv[k], engines[i].of);
		globfree(&g);
	}
}

int container_resolve(const char *text, const char *const roots[], char id[CONTAINER_ID],
		      struct mp_err *err)
{
	struct search s = {.name = text, .id = id};

	if (is_id(text)) {
		snprintf(id, CONTAINER_ID, "%s", text);
		return 0;
	}
	for (size_t i = 0; roots[i] && !s.found; i++)
		search_in(&s, roots[i]);
	if (s.found == 1)
		return 0;
	return s.found
		   ? mp_fail(
			 err, MP_EXIT_USAGE, -ENOENT,
			 "--container: %u containers have the name '%.100s'; give the id of one",
			 s.found, text)
		   : mp_fail(err, MP_EXIT_USAGE, -ENOENT,
			     "--container: no container of docker, podman or containerd has the "
			     "name '%.100s', which "
			     "is not an id of 12 digits or more either",
			     text);
}
