/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Classes of lifetimes, in which a recording counts culled blocks: below 1, 2, 5, 10, 20, 50 ... us
 * up to 10,000 s, and longer.  A lifetime that is equal to a limit is in the class above it.
 */
#ifndef FORMATS_LIFETIMES_H
#define FORMATS_LIFETIMES_H

#include <stdint.h>

#define LIFETIME_CLASSES 32u

/* Return: the class of a lifetime of @ns, from 0 to LIFETIME_CLASSES - 1. */
uint32_t lifetime_class(uint64_t ns);
/* Return: the shortest lifetime in class @i, ns; UINT64_MAX if there is no such class. */
uint64_t lifetime_least(uint32_t i);

#endif
