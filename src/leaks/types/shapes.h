/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds lists, trees, hash tables and arrays of pointers by how blocks refer to each other, without
 * debug information.  What must agree is in doc/heap.md, "Containers by shape".
 */
#ifndef LEAKS_TYPES_SHAPES_H
#define LEAKS_TYPES_SHAPES_H

#include "leaks/types/block_names.h"

/**
 * shapes_take() - name blocks by shape, and add the containers that they form
 * @n: with the names of all better sources
 * @g: as for block_names_take()
 * Needs 3 bytes a block, and for blocks that refer to blocks of their own kind 4 bytes more for each
 * such pointer, up to SHAPE_SLOTS.
 * Return: 0 or -ENOMEM.
 */
int shapes_take(struct block_names *n, const struct graph *g, struct image *img, struct modules *m);

#endif
