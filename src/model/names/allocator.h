/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds out which allocator a block came from, by the functions in its module. */
#ifndef MODEL_NAMES_ALLOCATOR_H
#define MODEL_NAMES_ALLOCATOR_H

#include "model/filter/filter.h"
#include "model/history/history.h"

struct model;
/* Sets model_hook.family, after all events were seen. */
void model_find_allocators(struct model *m);
enum allocator model_allocator(const struct model *m, const struct model_block *b);

#endif
