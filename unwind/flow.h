/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rules for code without unwind tables, from the code itself: instructions are followed forward
 * through a function with what they do to its frame.  Where that cannot be told there is no rule.
 * Pure: bytes in, rows out; table.c's own.
 */
#ifndef UNWIND_FLOW_H
#define UNWIND_FLOW_H

#include "arch/arch.h"
#include "lib/vec.h"
#include "unwind/rule.h"

struct flow_start {
	uint64_t addr;
	uint8_t mode; /* instruction set, see struct arch, frame_insn */
};
struct flow_starts {
	VEC(struct flow_start) list; /* by address, each once */
};

/* Rows: @rule holds from @pc on, NULL: none.  Other than 0 ends it. */
typedef int flow_row_fn(void *ctx, uint64_t pc, const struct uw_full *rule);

/**
 * flow_rows() - rows of the code between two addresses
 * @code: the bytes at [@start, @end), beginning with a function
 * @calls: direct calls' targets are added here, unsorted; or NULL
 * Return: 0, -ENOMEM or what @row returned.
 */
int flow_rows(const struct arch *arch, const uint8_t *code, uint64_t start, uint64_t end,
	      uint8_t mode, struct flow_starts *calls, flow_row_fn *row, void *ctx);

#endif
