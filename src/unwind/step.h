/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One unwind step with a complete rule.  Freestanding: the agent uses it on its own stack, the
 * recorder on copied ones.
 */
#ifndef UNWIND_STEP_H
#define UNWIND_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include "unwind/rule.h"

/* The registers of one frame, by column. */
struct uw_state {
	uint64_t reg[UW_MAX_REGS];
	uint32_t valid; /* bit i: reg[i] is known */
	bool exact_pc;	/* the pc is an interrupted instruction, not a return address */
};

enum uw_result {
	UW_STEP_OK,
	UW_STEP_OUTERMOST, /* no caller */
	UW_STEP_LOST,	   /* a register that the rule needs is not known */
	UW_STEP_MEMORY,	   /* memory that the rule needs cannot be read */
	UW_STEP_STUCK,	   /* the caller's frame is not above this one: damaged stack */
};

/* Reads one word of the architecture's size from stack memory.  Return: false if it is not
 * readable. */
typedef bool uw_read_fn(void *ctx, uint64_t addr, uint64_t *value);

static inline bool uw_known(const struct uw_state *s, uint32_t reg)
{
	return reg < UW_MAX_REGS && (s->valid >> reg & 1);
}

/* Computes the CFA of frame @s.  Return: UW_STEP_OK with *@cfa set, or the reason of the failure.
 */
static inline enum uw_result uw_cfa(const struct uw_full *f, const struct uw_state *s,
				    uw_read_fn *read, void *ctx, uint64_t *cfa)
{
	uint64_t base, depth;

	if (!uw_known(s, f->cfa_reg))
		return UW_STEP_LOST;
	base = s->reg[f->cfa_reg];
	switch (f->cfa_kind) {
	case UW_CFA_REG:
		*cfa = base + (int64_t)f->cfa_off;
		return UW_STEP_OK;
	case UW_CFA_DEREF:
		return read(ctx, base + (int64_t)f->cfa_off, cfa) ? UW_STEP_OK : UW_STEP_MEMORY;
	case UW_CFA_PLT:
		*cfa = base + 8 + ((s->reg[UW_REG_PC] & 15) >= (uint32_t)f->cfa_off ? 8 : 0);
		return UW_STEP_OK;
	case UW_CFA_GOROUTINE:
		if (!read(ctx, base + (int64_t)f->cfa_off, &depth) ||
		    !read(ctx, base + (int64_t)f->cfa_off + 8, cfa) || !read(ctx, *cfa + 8, cfa))
			return UW_STEP_MEMORY;
		*cfa -= depth;
		return UW_STEP_OK;
	}
	return UW_STEP_LOST;
}

/**
 * uw_step_full() - compute the registers of the caller
 * @f: the rule at @s's pc
 * @s: the frame
 * @next: filled with the caller's registers; must not be @s
 * @read: reads stack memory, called with @ctx
 */
static inline enum uw_result uw_step_full(const struct uw_full *f, const struct uw_state *s,
					  struct uw_state *next, uw_read_fn *read, void *ctx)
{
	enum uw_result result;
	uint64_t cfa;

	if (f->flags & UW_OUTERMOST)
		return UW_STEP_OUTERMOST;
	if (f->flags & UW_INVALID)
		return UW_STEP_LOST;
	result = uw_cfa(f, s, read, ctx, &cfa);
	if (result != UW_STEP_OK)
		return result;
	/* A signal frame can be on another stack than the interrupted code, and an interrupted
	 * function need not have a frame. */
	if (!(f->flags & (UW_SIGNAL | UW_SWITCH)) &&
	    (!uw_known(s, UW_REG_SP) || cfa < s->reg[UW_REG_SP] ||
	     (cfa == s->reg[UW_REG_SP] && (f->where[UW_REG_PC] != UW_REG || !s->exact_pc))))
		return UW_STEP_STUCK;
	next->valid = 0;
	for (uint32_t i = 0; i < UW_MAX_REGS; i++) {
		uint64_t value = 0;

		switch (f->where[i]) {
		case UW_SAME:
			if (i == UW_REG_SP)
				value = cfa;
			else if (i == UW_REG_PC || !uw_known(s, i))
				continue;
			else
				value = s->reg[i];
			break;
		case UW_AT_CFA:
			if (!read(ctx, cfa + (int64_t)f->off[i], &value))
				return UW_STEP_MEMORY;
			break;
		case UW_CFA_PLUS:
			value = cfa + (int64_t)f->off[i];
			break;
		case UW_AT_REG:
			if (!uw_known(s, f->at_reg))
				continue;
			if (!read(ctx, s->reg[f->at_reg] + (int64_t)f->off[i], &value))
				return UW_STEP_MEMORY;
			break;
		case UW_REG:
			if (!uw_known(s, (uint32_t)f->off[i]))
				continue;
			value = s->reg[f->off[i]];
			break;
		default:
			continue;
		}
		next->reg[i] = value;
		next->valid |= 1u << i;
	}
	next->exact_pc = (f->flags & UW_SIGNAL) != 0;
	if (!uw_known(next, UW_REG_PC))
		return f->where[UW_REG_PC] == UW_REG ? UW_STEP_LOST : UW_STEP_OUTERMOST;
	if (f->flags & UW_PC_TAGGED)
		next->reg[UW_REG_PC] &= UW_PC_BITS;
	if (!next->reg[UW_REG_PC])
		return UW_STEP_OUTERMOST;
	return UW_STEP_OK;
}

/* Return: whether a rule with @flags is valid at frame @s. */
static inline bool uw_rule_holds(uint8_t flags, const struct uw_state *s)
{
	return !(flags & UW_INVALID) && !(flags & UW_AT_CALLS && s->exact_pc);
}

/* Maximum frame size that uw_step_fp() searches. */
#define UW_FP_FRAME_MAX (16u << 10)

/* Return: whether @addr is in memory that is mapped executable. */
typedef bool uw_is_code_fn(void *ctx, uint64_t addr);

/**
 * uw_step_fp() - compute the registers of the caller by the frame pointer, where no rule is known
 * (x86-64)
 * @s: the frame
 * @next: filled with the stack pointer, frame pointer and pc of the caller; must not be @s
 * @read, @is_code: called with @ctx
 *
 * The code can use the frame pointer register for something else, or not have set it up yet.  Then
 * the return address of this frame is between the stack pointer and the register's value, or the
 * register does not point to a frame with a return address.  So the step is refused if any word in
 * between could be a return address, even one that an earlier call left there.
 *
 * Return: whether the register is this frame's frame pointer.
 */
static inline bool uw_step_fp(const struct uw_state *s, struct uw_state *next, uw_read_fn *read,
			      uw_is_code_fn *is_code, void *ctx)
{
	const uint64_t word = 8;
	uint64_t sp = s->reg[UW_REG_SP], fp = s->reg[UW_REG_FP], value;

	if (!uw_known(s, UW_REG_SP) || !uw_known(s, UW_REG_FP) || (sp | fp) & (word - 1) ||
	    fp < sp || fp - sp > UW_FP_FRAME_MAX)
		return false;
	for (uint64_t at = sp; at < fp; at += word) {
		if (!read(ctx, at, &value) || is_code(ctx, value))
			return false;
	}
	if (!read(ctx, fp, &next->reg[UW_REG_FP]) || !read(ctx, fp + word, &value) ||
	    !is_code(ctx, value - 1))
		return false;
	next->reg[UW_REG_PC] = value;
	next->reg[UW_REG_SP] = fp + 2 * word;
	next->valid = 1u << UW_REG_SP | 1u << UW_REG_FP | 1u << UW_REG_PC;
	next->exact_pc = false;
	return true;
}

#endif
