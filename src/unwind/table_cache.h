/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Caches the tables of large files between runs, by build id.  A cached table is used only if its
 * checksum is right and no other user can write to the directory; otherwise it is built again.
 */
#ifndef UNWIND_TABLE_CACHE_H
#define UNWIND_TABLE_CACHE_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * unwind_cache_dir() - open the cache directory, creating it with mode 0700 if it does not exist
 * @path: its parent must exist
 * Return: a descriptor; -EACCES: other users own it or can write to it; or another negative errno.
 */
int unwind_cache_dir(const char *path);

/**
 * unwind_cache_table() - load a cached table, or call unwind_table_build() and cache the result
 * @dir: from unwind_cache_dir(), or negative: do not use the cache
 * @id, @id_length: the file's build id; length 0: do not use the cache
 * Return: as unwind_table_build().  A failure to write the cache is not an error.
 */
int unwind_cache_table(int dir, const uint8_t *id, uint32_t id_length, Elf *elf,
		       struct rule_set *set, struct unwind_table *table);

#endif
