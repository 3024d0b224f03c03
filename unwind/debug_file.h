/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which files libdw may open.  A program's file names others that hold its debug information, and
 * whoever made it may have made those, too: a fifo would make memprof wait, a small file that
 * unpacks to terabytes would take its memory.
 */
#ifndef UNWIND_DEBUG_FILE_H
#define UNWIND_DEBUG_FILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* Is what @fd reads an ELF file that does not unpack to more than memory should hold? */
bool debug_file_is_sane(int fd);

/* The separate debug file of a module: dwfl_standard_find_debuginfo(), for such files only. */
int debug_file_find(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
		    const char *file, const char *link, GElf_Word crc, char **path);

/**
 * debug_file_may_split() - may the .dwo file of @unit be opened?
 * @unit: a skeleton unit of @mod (DWARF 5, section 3.1.2)
 */
bool debug_file_may_split(Dwfl_Module *mod, Dwarf_Die *unit);

#endif
