/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mimalloc 3, whose design differs from 2.  Its walker is called by the walker for mimalloc. */
#ifndef LEAKS_MIMALLOC_H
#define LEAKS_MIMALLOC_H

#include "leaks/walker.h"

/* Fills @heap.  Return: 0; -ENOENT: no mimalloc 3 here; or -ENOMEM. */
int mimalloc_3_walk(struct image *img, struct heap *heap);

#endif
