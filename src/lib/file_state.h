/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LIB_FILE_STATE_H
#define LIB_FILE_STATE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Return: whether both were read of the same file, and it was not written in between. */
static inline bool file_is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

#endif
