/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory of a process that lies in memprof, and an image that takes it from there: what a running
 * process shows instead of a copy.
 */
#ifndef LEAKS_FROZEN_H
#define LEAKS_FROZEN_H

#include "leaks/image.h"

struct frozen_run {
	uint64_t start, end;
};
struct frozen_chunk {
	uint64_t start;
	uint8_t *bytes;
};

/* Zero-initialize; frozen_free() at the end. */
struct frozen {
	VEC(struct frozen_chunk) chunks; /* by address; never touched parts take no memory */
	VEC(struct frozen_run) runs;	 /* by address: what was there at the moment it shows */
	const struct image_ops *below;	 /* for all that is not frozen */
	struct image_ops ops;
};

/**
 * frozen_room() - where the bytes from @addr on belong
 * @len: how many are wanted; on return how many of them have room there
 * What was there before stays.  Return: NULL if there is no memory.
 */
uint8_t *frozen_room(struct frozen *f, uint64_t addr, size_t *len);
/* These bytes were there at the moment that it shows; in order of address.  Return: 0 or -ENOMEM.
 */
int frozen_show(struct frozen *f, uint64_t start, uint64_t end);
/* Another moment is to be shown; the bytes stay. */
void frozen_hide(struct frozen *f);
void frozen_free(struct frozen *f);

/* From now on @img, which is open, has the maps that are marked as frozen from @f, which must stay.
 */
void image_freeze(struct image *img, struct frozen *f);

#endif
