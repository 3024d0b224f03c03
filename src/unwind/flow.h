/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Derives rules for code without unwind tables from the code itself: follows the instructions of a
 * function forward and tracks their effect on its frame.  Code whose effect is not known gets no
 * rule.  Pure: bytes in, rows out.  Used by build.c only.
 */
#ifndef UNWIND_FLOW_H
#define UNWIND_FLOW_H

#include "arch/arch.h"
#include "lib/vec.h"
#include "unwind/rule.h"

struct flow_start {
	uint64_t addr;
	uint8_t mode; /* instruction set, see arch.unwind.frame_insn */
};
struct flow_starts {
	VEC(struct flow_start) list; /* by address, without duplicates */
};

/* Receives a row: @rule is valid from @pc on; NULL: no rule.  A return value other than 0 ends the
 * analysis. */
typedef int flow_row_fn(void *ctx, uint64_t pc, const struct uw_full *rule);

/**
 * flow_rows() - compute the rows of the code between two addresses
 * @code: the bytes at [@start, @end), beginning with a function
 * @calls: receives the targets of direct calls, unsorted; or NULL
 * Return: 0, -ENOMEM or the value that @row returned.
 */
int flow_rows(const struct arch *arch, const uint8_t *code, uint64_t start, uint64_t end,
	      uint8_t mode, struct flow_starts *calls, flow_row_fn *row, void *ctx);

#endif
