/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many blocks and bytes a block represents: only itself, unless the recording is a sample or was
 * thinned (doc/thinning.md). */
#ifndef MODEL_SUMS_WEIGHT_H
#define MODEL_SUMS_WEIGHT_H

#include <stdbool.h>
#include "lib/estimate.h"
#include "model/history/history.h"

struct model;
/* Return: whether blocks and bytes are estimates, because some blocks represent several. */
bool model_is_estimated(const struct model *m);
struct estimate model_estimate(const struct model *m, const struct model_block *b);
/* As model_estimate(), for a recording that is being read. */
struct estimate model_weigh(uint64_t sample_interval, const struct model_block *b);

#endif
