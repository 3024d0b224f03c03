/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live blocks that C++ initializers of static variables allocated, by source file and line.  Such an
 * initializer is a function that the compiler calls __static_initialization_and_destruction_0; a stack
 * counts for the innermost one that it has.
 */
#ifndef SERVER_ANSWERS_INITIALIZERS_H
#define SERVER_ANSWERS_INITIALIZERS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"

struct model;

struct initializer_line {
	const char *file; /* of the model; "?" if it is not known */
	uint32_t line;
	uint64_t count, size; /* live blocks, and their usable bytes */
};

struct initializer_file {
	const char *file;
	size_t first, n; /* its lines, in initializers.lines */
	uint64_t count, size;
};

struct initializers {
	VEC(struct initializer_line) lines; /* by file, then line */
	VEC(struct initializer_file) files; /* by size, the largest first */
	uint64_t count, size;
};

/**
 * initializers_find() - find and sum up the blocks
 * @constants: only those of clones that the compiler made for constant arguments; else only the others
 *
 * Return: 0 with @i filled, or -ENOMEM; in both cases to be freed by initializers_free().
 */
int initializers_find(struct model *m, bool constants, struct initializers *i);
void initializers_free(struct initializers *i);

#endif
