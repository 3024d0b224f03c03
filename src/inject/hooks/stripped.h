/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_HOOKS_STRIPPED_H
#define INJECT_HOOKS_STRIPPED_H

#include <libelf.h>

/**
 * stripped_debug_file() - the separate debug file of a stripped program
 * @elf: the program; the debug file must have the same build-id
 * @path: path of the program, for finding the debug file that it names (.gnu_debuglink)
 * @fd: set to a descriptor that the caller closes after elf_end()
 * Return: NULL if there is none with the same build-id.
 */
Elf *stripped_debug_file(Elf *elf, const char *path, int *fd);

#endif
