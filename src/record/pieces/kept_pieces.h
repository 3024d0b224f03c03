/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The finished pieces of a rotated recording of which only the newest are kept (--keep). */
#ifndef RECORD_PIECES_KEPT_PIECES_H
#define RECORD_PIECES_KEPT_PIECES_H

#include <stdint.h>
#include <sys/stat.h>
#include "lib/vec.h"

struct kept_piece {
	char *path; /* owned */
	struct stat as_closed;
};

struct kept_pieces {
	VEC(struct kept_piece) list; /* the oldest first */
	uint32_t deleted;
	int error; /* why the last deletion failed; 0: it did not */
};

/**
 * kept_pieces_add() - note a piece that is complete, and delete the oldest ones
 * @open: of the piece's descriptor before it was closed
 * @keep: number of pieces that remain
 *
 * A file that another process has replaced or changed since the recorder closed it is not deleted.
 * Return: 0 or -ENOMEM.
 */
int kept_pieces_add(struct kept_pieces *k, const char *path, const struct stat *open,
		    uint32_t keep);
void kept_pieces_free(struct kept_pieces *k);

#endif
