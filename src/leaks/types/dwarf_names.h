/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names blocks by debug information: from each variable with a fixed place, and from each object with
 * a vtable, follows members and pointers by their declared types, and takes the containers that it
 * comes upon.
 */
#ifndef LEAKS_TYPES_DWARF_NAMES_H
#define LEAKS_TYPES_DWARF_NAMES_H

#include "leaks/types/block_names.h"

/**
 * dwarf_names_take() - name the blocks of @g
 * @n: after the classes of blocks with vtables have been named
 * Adds to n->notes what was left out.
 * Needs 2 bits a block, and memory for what is read of the debug information.
 * Return: 0 or -ENOMEM.
 */
int dwarf_names_take(struct block_names *n, const struct graph *g, struct image *img,
		     struct modules *m);

#endif
