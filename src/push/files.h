/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Directories with a limit: the oldest files make room for new ones. */
#ifndef PUSH_FILES_H
#define PUSH_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "lib/vec.h"

struct file_entry {
	struct timespec written;
	uint64_t bytes;
	char name[NAME_MAX + 1];
};

struct files {
	VEC(struct file_entry) list; /* the oldest first */
	uint64_t bytes;
};

/* Return: whether @name is longer than @suffix and ends with it. */
bool files_has_suffix(const char *name, const char *suffix);
/* Compare for files_list(): by the time of the last write; by name. */
int files_by_time(const void *a, const void *b);
int files_by_name(const void *a, const void *b);

/**
 * files_list() - list the regular files with a suffix, without those whose name begins with a dot
 * @dir: descriptor of the directory
 * @order: of the list
 * @f: zeroed; its list is to be freed by vec_free(), also after an error
 *
 * Return: 0 or a negative errno.
 */
int files_list(int dir, const char *suffix, int (*order)(const void *a, const void *b),
	       struct files *f);
/**
 * files_make_room() - remove the oldest files until @n more bytes are within @limit
 * @removed: the number of removed files is added; can be NULL
 *
 * Return: 0, -EFBIG: @n is more than the limit, or another negative errno.
 */
int files_make_room(int dir, const char *suffix, int (*order)(const void *a, const void *b),
		    uint64_t n, uint64_t limit, uint64_t *removed);

#endif
