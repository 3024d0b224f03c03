/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A store, in memprof, for the memory of a process at one moment, and an image that reads from it.
 * For a running process it replaces a copy.
 */
#ifndef SNAPSHOT_FROZEN_H
#define SNAPSHOT_FROZEN_H

#include "snapshot/image.h"

struct frozen_run {
	uint64_t start, end;
};
struct frozen_chunk {
	uint64_t start;
	uint8_t *bytes;
};

/* Zero-initialize; frozen_free() at the end. */
struct frozen {
	VEC(struct frozen_chunk) chunks; /* by address; untouched parts use no memory */
	VEC(struct frozen_run) runs;	 /* by address: what was present at the moment shown */
	const struct image_ops *below;	 /* reads what is not frozen */
	struct image_ops ops;
};

/**
 * frozen_room() - where to store the bytes from @addr on
 * @len: how many are wanted; on return, how many of them fit there
 * Earlier contents are kept.  Return: NULL if there is no memory.
 */
uint8_t *frozen_room(struct frozen *f, uint64_t addr, size_t *len);
/* Notes that these bytes were present at the moment shown; called in order of address.  Return: 0
 * or -ENOMEM. */
int frozen_show(struct frozen *f, uint64_t start, uint64_t end);
/* Prepares for another moment: forgets which bytes were present.  The stored bytes stay. */
void frozen_hide(struct frozen *f);
void frozen_free(struct frozen *f);

/* From now on @img, which is open, reads its maps marked as frozen from @f.  @f must outlive @img.
 */
void image_freeze(struct image *img, struct frozen *f);

#endif
