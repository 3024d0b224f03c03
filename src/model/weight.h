/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many blocks and bytes a block represents in a sampled recording; only itself in others. */
#ifndef MODEL_WEIGHT_H
#define MODEL_WEIGHT_H

#include "lib/estimate.h"
#include "model/history.h"

struct model;
struct estimate model_estimate(const struct model *m, const struct model_block *b);
/* As model_estimate(), for a recording that is being read. */
struct estimate model_weigh(uint64_t sample_interval, const struct model_block *b);

#endif
