/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Blocks that are found by an offset: structures of fontconfig have differences of addresses in
 * place of pointers, so that they can also be mapped from a file (fontconfig's src/fcint.h).
 */
#ifndef LEAKS_OFFSETS_H
#define LEAKS_OFFSETS_H

#include <stdbool.h>
#include "leaks/scan.h"

/* Return: true if the process has mapped a library that has such structures. */
bool offsets_used(const struct image *img);
/* Adds edges from @block, if it is such a structure, to the blocks to which its offsets lead: those
 * of an FcPattern to its elements, those of an FcCharSet to its two arrays and its leaves.  It is
 * one if each array begins where a live block does, and has about its size.
 * @bytes: the first @n bytes of the block
 * @img: has the array of leaves */
void offsets_scan(struct scan *s, struct image *img, uint32_t block, const uint8_t *bytes,
		  size_t n);

#endif
