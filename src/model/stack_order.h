/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stacks of a model by cost: most lists and trees begin with the most expensive one. */
#ifndef MODEL_STACK_ORDER_H
#define MODEL_STACK_ORDER_H

#include "model/group.h"

struct model;

/* Return: ids of the stacks whose cost is not 0, highest first, ties by id, to be freed by the
 * caller; NULL when out of memory. */
uint32_t *stack_order(const struct model *m, enum cost cost, uint32_t *n);
/* Number of stacks with allocations or mappings. */
uint32_t stacks_used(const struct model *m);

#endif
