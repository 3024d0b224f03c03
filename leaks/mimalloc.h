/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mimalloc 3, which is another design than 2: a walker behind that of mimalloc's name. */
#ifndef LEAKS_MIMALLOC_H
#define LEAKS_MIMALLOC_H

#include "leaks/walker.h"

/* Fills @heap.  Return: 0; -ENOENT: nothing of this version is there; or -ENOMEM. */
int mimalloc_3_walk(struct image *img, struct heap *heap);

#endif
