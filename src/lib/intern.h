/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Interning: gives equal values equal small ids, counted from 1 in order of first appearance.
 * Exporters use it to number strings, addresses and stacks.
 */
#ifndef LIB_INTERN_H
#define LIB_INTERN_H

#include <stdbool.h>
#include <stdint.h>

struct intern;

/* Return: an empty table, or NULL when out of memory. */
struct intern *intern_new(void);
void intern_free(struct intern *t);

/**
 * intern_pair() - get the id of a pair of numbers
 * @fresh: set to whether the pair is new; can be NULL
 *
 * Return: its id, or 0 when out of memory.  A table has pairs or texts, never both.
 */
uint32_t intern_pair(struct intern *t, uint64_t a, uint64_t b, bool *fresh);
/* As intern_pair(), for texts, which are copied. */
uint32_t intern_text(struct intern *t, const char *text, bool *fresh);

#endif
