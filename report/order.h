/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef REPORT_ORDER_H
#define REPORT_ORDER_H

#include "report/model.h"

/* Ids of the stacks whose cost is not 0, dearest first, ties by id; the caller frees them.
 * Return: NULL when out of memory. */
uint32_t *order_by(const struct model *m, enum cost cost, uint32_t *n);
/* Number of stacks that something was allocated or mapped with. */
uint32_t order_used(const struct model *m);

#endif
