/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recordings that the server serves: one for each id. */
#ifndef SERVER_RECORDINGS_H
#define SERVER_RECORDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "lib/vec.h"

struct recording {
	char *path;  /* absolute */
	char id[33]; /* 32 lower-case hexadecimal digits */
	pid_t pid;   /* the process; 0: it is of several */
};

struct recordings {
	VEC(struct recording) at; /* in the order in which they were added */
};

/**
 * recordings_add() - add a file
 * @known: set if one with the same id was added before; then @path is not added
 *
 * Reads the file's beginning only.  Return: 0, or a negative errno with @err (not a recording ...).
 */
int recordings_add(struct recordings *r, const char *path, bool *known, struct mp_err *err);
void recordings_free(struct recordings *r);

/* @id: 32 hexadecimal digits, or "last".  Return: false if there is none. */
bool recordings_find(const struct recordings *r, const char *id, uint32_t *index);

#endif
