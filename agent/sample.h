/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sampling mode: which threads are how far from their next sample, which live blocks are sampled.
 */
#ifndef AGENT_SAMPLE_H
#define AGENT_SAMPLE_H

#include "agent/agent.h"

/* The calling thread's countdown, begun if it was not.  It is busy: the entry code counts nothing
 * until sampler_leave(), so that what an allocator calls inside is not counted twice. */
struct ss_local *sampler_enter(struct ss_control *c, struct ag_thread *t);
void sampler_leave(const struct ag_thread *t, struct ss_local *s);

/* Notes a block that is to be recorded.  Return: false when there is no room. */
bool sampled_add(struct ss_control *c, uint64_t block);
/* Takes it out again.  Return: whether it was a sampled one. */
bool sampled_take(struct ss_control *c, uint64_t block);

#endif
