/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The counters of what a recording can lack, by the names that JSON has (doc/json.md, "losses"). */
#ifndef MODEL_LOSSES_H
#define MODEL_LOSSES_H

#include <stdint.h>

struct model;

struct model_loss {
	const char *name;
	uint64_t value;
};

/* Return: counter @i, from 0; its name is NULL after the last one. */
struct model_loss model_loss(const struct model *m, uint32_t i);

#endif
