/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Evaluates conditions on stacks: their depth, and the names of their frames. */
#ifndef MODEL_FILTER_STACK_CONDITIONS_H
#define MODEL_FILTER_STACK_CONDITIONS_H

#include <stdint.h>
#include "lib/err.h"
#include "model/filter/filter.h"

struct model;

/**
 * stacks_match() - clear @keep[id] of every stack that does not match
 * @keep: m->stacks.n entries; those that are 0 are skipped
 *
 * Return: 0, or a negative errno with @err filled.
 */
int stacks_match(const struct filter *f, struct model *m, uint8_t *keep, struct mp_err *err);

#endif
