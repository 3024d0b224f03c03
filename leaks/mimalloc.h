/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mimalloc's two designs, one walker each behind that of its name. */
#ifndef LEAKS_MIMALLOC_H
#define LEAKS_MIMALLOC_H

#include "leaks/walker.h"

/* Each fills @heap.  Return: 0; -ENOENT: nothing of this version is there; or -ENOMEM. */
int mimalloc_2_walk(struct image *img, struct heap *heap);
int mimalloc_3_walk(struct image *img, struct heap *heap);

#endif
