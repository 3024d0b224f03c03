/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_DEBUG_FILE_H
#define INJECT_DEBUG_FILE_H

#include <libelf.h>

/**
 * debug_file_open() - the separate debug file of a program, which has the symbols it was stripped
 * of
 * @elf: the program; its build-id is what tells
 * @path: where its file is, for the name that it gives its debug file (.gnu_debuglink)
 * @fd: set to a descriptor that the caller closes after elf_end()
 * Return: NULL: there is none with the same build-id.
 */
Elf *debug_file_open(Elf *elf, const char *path, int *fd);

#endif
