/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks frames that were found by frame pointers, which the agent cannot do during its walk. */
#ifndef RECORD_STACKS_BY_FP_H
#define RECORD_STACKS_BY_FP_H

#include <stdint.h>

struct recorder_config;
/* Sets SS_STACK_BY_FP for a stack that relies on frame pointers, and cuts it at the first one that
 * did not lead to a return address.  Return: how many of the @n addresses remain. */
uint32_t stack_by_fp(const struct recorder_config *c, const uint64_t *pc, uint32_t n,
		     uint32_t *flags);

#endif
