/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocators without a walker, which are only named. */
#ifndef HEAPS_NAMED_H
#define HEAPS_NAMED_H

#include "snapshot/image.h"

/**
 * named_find() - look for an allocator whose blocks memprof cannot list
 * Nothing of its memory is owned by a heap, so all of it counts as roots.
 * Return: its name, or NULL: no module contains one.
 */
const char *named_find(struct image *img);

#endif
