/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/kept_pieces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The number of a deleted file's inode can be that of the file which took its place, but not its time
 * of change, too. */
static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return is_same_file(a, b) && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void delete_oldest(struct kept_pieces *k)
{
	struct kept_piece *oldest = &k->list.at[0];
	struct stat now;

	if (!lstat(oldest->path, &now) && is_unchanged(&now, &oldest->as_closed)) {
		k->error = unlink(oldest->path) ? -errno : 0;
		k->deleted += !k->error;
	}
	free(oldest->path);
	k->list.n--;
	memmove(oldest, oldest + 1, k->list.n * sizeof(*oldest));
}

int kept_pieces_add(struct kept_pieces *k, const char *path, const struct stat *open, uint32_t keep)
{
	struct kept_piece piece = {.path = strdup(path)};

	/* A name that is another file's now is nothing to delete: its zeroed state matches no file. */
	if (lstat(path, &piece.as_closed) || !is_same_file(&piece.as_closed, open))
		memset(&piece.as_closed, 0, sizeof(piece.as_closed));
	if (!piece.path || vec_push(&k->list, piece)) {
		free(piece.path);
		return -ENOMEM;
	}
	while (k->list.n > keep)
		delete_oldest(k);
	return 0;
}

void kept_pieces_free(struct kept_pieces *k)
{
	vec_for_each (&k->list, piece)
		free(piece->path);
	vec_free(&k->list);
}
