/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mimalloc 3, whose design differs from 2.  Its walker is called by the walker for mimalloc. */
#ifndef HEAPS_MIMALLOC_MIMALLOC_H
#define HEAPS_MIMALLOC_MIMALLOC_H

#include "heaps/heap.h"
#include "snapshot/image.h"

/* Fills @heap.  Return: 0; -ENOENT: no mimalloc 3 here; or -ENOMEM. */
int mimalloc_3_walk(struct image *img, struct heap *heap);

#endif
