/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tables of large files, kept between runs by build-id.  A kept table is only believed when its
 * checksum holds and nobody else can write to the directory; else it is built again.
 */
#ifndef UNWIND_CACHE_H
#define UNWIND_CACHE_H

#include "unwind/table.h"

/**
 * unwind_cache_dir() - open the directory of kept tables, made with mode 0700 if it is not there
 * @path: its parent must exist
 * Return: descriptor; -EACCES: it is not ours alone; or another negative errno.
 */
int unwind_cache_dir(const char *path);

/**
 * unwind_cache_table() - unwind_table_build(), or what was kept of an earlier one
 * @dir: of unwind_cache_dir(), or negative: nothing is kept
 * @id, @id_length: the file's build-id; length 0: nothing is kept
 * Return: as unwind_table_build().  That a table could not be kept is no error.
 */
int unwind_cache_table(int dir, const uint8_t *id, uint32_t id_length, Elf *elf,
		       struct rule_set *set, struct unwind_table *table);

#endif
