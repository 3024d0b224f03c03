/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How much memory the debug information of a file needs before anything of it can be read. */
#ifndef UNWIND_UNPACKED_H
#define UNWIND_UNPACKED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes that an xz file of @n bytes at @xz unpacks to, by what its chunks say, which decoders hold
 * them to.  What is not such a file counts up to where it is wrong. */
uint64_t unpacked_xz(const uint8_t *xz, uint64_t n);

/**
 * unpacked_is_sane() - may libdw be given this file?
 * @size: bytes of the file
 * It unpacks compressed sections and .gnu_debugdata whole.  Compressed debug information is a third
 * to a tenth of the size; a file made for that can become a thousand times as large.
 */
bool unpacked_is_sane(Elf *elf, uint64_t size);

#endif
