/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recording's ids of stacks, and their entries in the file.  A stack is in every piece that
 * uses it. */
#ifndef RECORD_STACKS_STACK_IDS_H
#define RECORD_STACKS_STACK_IDS_H

#include <stdint.h>
#include "formats/file.h"
#include "formats/record.h"

struct aggregator;
/* Return: the id of a stack of @n frames, which is then in the current piece; 0: out of memory. */
uint32_t stack_add(struct aggregator *a, const uint64_t *pc, uint32_t n, uint32_t flags);
/* Writes the frames of stack @id to @file.  Return: 0 or a negative errno. */
int stack_put(const struct aggregator *a, uint32_t id, struct mpf_writer *file);
/* Makes sure that stack @id is in the current piece.  Return: @id. */
uint32_t stack_use(struct aggregator *a, uint32_t id);
/* Return: the id of the stack that a record of @slot calls @agent_id, as with stack_add(); 0: none
 * or unknown. */
uint32_t stack_id(struct aggregator *a, uint32_t slot, uint32_t agent_id);
/* Unwinds the stack that the agent copied for a later record of @slot. */
void stack_take_raw(struct aggregator *a, uint32_t slot, const struct mpr_raw_stack *raw);

#endif
