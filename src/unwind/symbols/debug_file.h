/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks the files that libdw opens.  A program's file names the files with its debug information,
 * which can be malicious, too: a fifo would make memprof wait, a small file that decompresses to
 * terabytes would use up its memory.
 */
#ifndef UNWIND_SYMBOLS_DEBUG_FILE_H
#define UNWIND_SYMBOLS_DEBUG_FILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* Where libdwfl looks for debug files; "+": it checks the debuglink's checksum (libdwfl.h,
 * dwfl_standard_find_debuginfo). */
#define DEBUG_FILE_PATH "+:.debug:/usr/lib/debug"

/* How libdwfl finds files.  Set .debuginfo_path to DEBUG_FILE_PATH or a longer one in a copy. */
extern const Dwfl_Callbacks debug_file_callbacks;

/* Return: whether @fd is a file whose compressed sections do not decompress to an excessive
 * size. */
bool debug_file_is_sane(int fd);

/* Finds the separate debug file of a module.  As dwfl_standard_find_debuginfo(), but only for files
 * that pass the check.  @data: struct debuginfod of the servers to ask if this machine has none, or
 * NULL. */
int debug_file_find(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
		    const char *file, const char *link, GElf_Word crc, char **path);

/**
 * debug_file_may_split() - check whether libdw can safely open the .dwo file of @unit
 * @unit: a skeleton unit of @mod (DWARF 5, section 3.1.2)
 */
bool debug_file_may_split(Dwfl_Module *mod, Dwarf_Die *unit);

#endif
