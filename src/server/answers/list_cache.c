/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/list_cache.h"

#include <stdlib.h>
#include <string.h>
#include "lib/file_state.h"
#include "lib/vec.h"

struct kept {
	char *path, *text;
	struct stat file;
};

/* Lives as long as the process. */
static VEC(struct kept) cache;

static struct kept *find_kept(const char *path)
{
	vec_for_each (&cache, k) {
		if (!strcmp(k->path, path))
			return k;
	}
	return NULL;
}

const char *list_cache_get(const char *path, const struct stat *now)
{
	const struct kept *k = find_kept(path);

	return k && file_is_unchanged(&k->file, now) ? k->text : NULL;
}

void list_cache_put(const char *path, const struct stat *of, char *text)
{
	struct kept fresh = {.path = strdup(path), .text = text, .file = *of};
	struct kept *k = find_kept(path);

	if (k) {
		free(k->path);
		free(k->text);
		*k = fresh;
		if (fresh.path)
			return;
		*k = cache.at[--cache.n];
	} else if (fresh.path && !vec_push(&cache, fresh)) {
		return;
	}
	free(fresh.path);
	free(text);
}
