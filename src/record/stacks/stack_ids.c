/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks/stack_ids.h"

#include <string.h>
#include "inject/block/dumped.h"
#include "inject/session.h"
#include "record/aggregator.h"
#include "record/stacks/by_fp.h"
#include "record/stacks/code_look.h"

/* Return: whether a caller in the stack is a hooked allocator function: then the allocator made
 * the mapping for itself. */
static bool inside_allocator(const struct ss_journal *j, const uint64_t *pc, uint32_t n)
{
	uint32_t hooks = __atomic_load_n(&j->nhooks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 1; i < n; i++) {
		uint64_t at = pc[i] & ~SS_PC_EXACT;

		for (uint32_t k = 0; k < hooks; k++) {
			uint32_t kind;

			if (session_hook_spans(&j->hook[k], at, &kind) && kind < SS_HOOK_MMAP)
				return true;
		}
	}
	return false;
}

/* @address, @all: the stack in the process, which can have more frames */
static uint32_t add_stack(struct aggregator *a, const uint64_t *pc, uint32_t n, uint32_t flags,
			  const uint64_t *address, uint32_t all)
{
	uint32_t id;
	bool fresh;

	if (a->config->max_depth && n > a->config->max_depth) {
		n = a->config->max_depth;
		flags |= SS_STACK_CUT;
	}
	id = stacks_intern(&a->stacks, pc, n, flags, &fresh);
	if (fresh) {
		a->stacks.at[id].inner = inside_allocator(a->config->journal, address, all);
		a->now.stacks++;
	}
	return stack_use(a, id);
}

uint32_t stack_add(struct aggregator *a, const uint64_t *pc, uint32_t n, uint32_t flags)
{
	return add_stack(a, pc, n, flags, pc, n);
}

/* As stack_add(), for a stack in the process.  @by_agent: its callers were found by the agent */
static uint32_t add_of_process(struct aggregator *a, uint64_t *pc, uint32_t n, uint32_t flags,
			       bool by_agent)
{
	uint64_t address[SS_MAX_FRAMES];
	uint32_t all = stack_by_fp(a->config, pc, n, &flags);

	if (!a->code.now.n)
		return stack_add(a, pc, all, flags);
	memcpy(address, pc, all * sizeof(*pc));
	n = code_ranges_apply(&a->code, pc, all, &flags, by_agent);
	return add_stack(a, pc, n, flags, address, all);
}

int stack_put(const struct aggregator *a, uint32_t id, struct mpf_writer *file)
{
	const struct stack *s = &a->stacks.at[id];
	uint64_t pc[SS_MAX_FRAMES];

	stacks_pcs(&a->stacks, id, pc);
	return mpf_put_stack(file, id, s->flags, pc, s->n);
}

uint32_t stack_use(struct aggregator *a, uint32_t id)
{
	struct stack *s = &a->stacks.at[id];

	if (id && s->piece != a->piece.number + 1) {
		s->piece = a->piece.number + 1;
		a->now.error = stack_put(a, id, a->file);
	}
	return id;
}

uint32_t stack_id(struct aggregator *a, uint32_t slot, uint32_t agent_id)
{
	struct live_block known = {.addr = (uint64_t)agent_id << 4, .size = 1}, old;
	uint64_t pc[SS_MAX_FRAMES];
	const struct ss_stack *s;
	uint32_t n, flags, recent = agent_id * 0x9e3779b9u >> 23;

	if (agent_id == MPR_STACK_NONE)
		return 0;
	if (agent_id & MPR_STACK_RAW) {
		struct slot_state *st = &a->slot[slot];

		return st->raw_sequence == (agent_id & ~MPR_STACK_RAW) ? stack_use(a, st->raw_stack)
								       : 0;
	}
	if (agent_id >= a->layout->arena_words)
		return 0;
	if (a->recent_stack[recent].word == agent_id)
		return stack_use(a, a->recent_stack[recent].id);
	a->recent_stack[recent].word = 0;
	if (live_find(a->stack_of_word, known.addr, &known)) {
		a->recent_stack[recent].word = agent_id;
		a->recent_stack[recent].id = known.stack;
		return stack_use(a, known.stack);
	}
	s = (const struct ss_stack *)(a->layout->arena + agent_id);
	n = s->n;
	flags = s->flags;
	if (n > SS_MAX_FRAMES || agent_id + 1ull + n > a->layout->arena_words)
		return 0;
	memcpy(pc, s->pc, n * sizeof(*pc)); /* copied once: the target could change it */
	known.stack = add_of_process(a, pc, n, flags, true);
	if (known.stack && live_put(a->stack_of_word, &known, &old))
		a->losses.stacks_full++;
	return known.stack;
}

void stack_take_raw(struct aggregator *a, uint32_t slot, const struct mpr_raw_stack *raw)
{
	struct dumped d = {.arch = arch_native(),
			   .valid = (uint32_t)raw->reg_valid,
			   .stack = (const uint8_t *)(raw + 1),
			   .stack_bytes = raw->bytes};
	uint64_t pc[SS_MAX_FRAMES];
	uint32_t n, flags;
	bool unknown;

	if (raw->bytes > raw->h.size - sizeof(*raw))
		return;
	memcpy(d.regs, raw->regs, sizeof(d.regs));
	n = dumped_unwind(a->config->block, a->config->block_length, &d, pc, SS_MAX_FRAMES, &flags,
			  &unknown);
	if (unknown && code_update_tables(a))
		n = dumped_unwind(a->config->block, a->config->block_length, &d, pc, SS_MAX_FRAMES,
				  &flags, &unknown);
	a->slot[slot].raw_sequence = raw->sequence;
	a->slot[slot].raw_stack = add_of_process(a, pc, n, flags, false);
	aggregator_moves(a);
}
