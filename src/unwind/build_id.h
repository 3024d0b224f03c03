/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef UNWIND_BUILD_ID_H
#define UNWIND_BUILD_ID_H

#include <libelf.h>
#include <stdint.h>

/* Return: length of the build-id copied to @out, 0 if the file has none. */
int elf_build_id(Elf *elf, uint8_t out[32]);

#endif
