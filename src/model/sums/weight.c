/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/sums/weight.h"

#include "model/model.h"

bool model_is_estimated(const struct model *m)
{
	return m->info.sample_interval || m->facts.losses.thinned || m->sums.thinned.n;
}

struct estimate model_estimate(const struct model *m, const struct model_block *b)
{
	return model_weigh(m->info.sample_interval, b);
}

struct estimate model_weigh(uint64_t sample_interval, const struct model_block *b)
{
	return estimate_block(sample_interval, b->size, b->weight, b->addr ^ b->time_ns << 32);
}
