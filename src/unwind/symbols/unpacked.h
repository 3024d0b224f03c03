/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes how much memory the compressed debug information of a file needs, without decompressing
 * it. */
#ifndef UNWIND_SYMBOLS_UNPACKED_H
#define UNWIND_SYMBOLS_UNPACKED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Return: the bytes to which the xz file of @n bytes at @xz decompresses, according to its chunk
 * headers, which decoders enforce.  A damaged file counts up to the first error. */
uint64_t unpacked_xz(const uint8_t *xz, uint64_t n);

/**
 * unpacked_is_sane() - check whether libdw can safely read this file
 * @size: bytes of the file libdw decompresses whole sections and .gnu_debugdata.  Debug information
 * is normally compressed to a third or a tenth, but a malicious file can become a thousand times
 * larger.
 */
bool unpacked_is_sane(Elf *elf, uint64_t size);

#endif
