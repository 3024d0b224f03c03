/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef UNWIND_BUILD_ID_H
#define UNWIND_BUILD_ID_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return: length of the build-id copied to @out, 0 if the file has none. */
int elf_build_id(Elf *elf, uint8_t out[32]);

/* Return: whether @fd is an ELF file and has the build-id @id of @n bytes; @n 0: any, or none. */
bool elf_is_build(int fd, const uint8_t *id, size_t n);

#endif
