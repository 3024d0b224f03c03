/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds places for new mappings. */
#ifndef INJECT_PLACE_H
#define INJECT_PLACE_H

#include <stdint.h>
#include "attach/proc/maps.h"

/**
 * place_near() - a free range near code
 * @low, @high: addresses of the code: every byte of the result is within @reach of both
 * @length: bytes, a multiple of the page size
 *
 * Keeps a distance from where the heap and stacks grow.
 * Return: the address nearest to @low, or 0 if there is none.
 */
uint64_t place_near(const struct maps *maps, uint64_t low, uint64_t high, uint64_t reach,
		    uint64_t length);

#endif
