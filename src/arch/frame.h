/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What an instruction does to the frame of its function, for code without unwind tables
 * (unwind/flow.h).  Registers have the numbers that instructions and DWARF use.
 */
#ifndef ARCH_FRAME_H
#define ARCH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_NO_REG 0xff

enum arch_flow {
	ARCH_FLOW_NEXT,
	ARCH_FLOW_CALL,	  /* returns; the link register is overwritten */
	ARCH_FLOW_BRANCH, /* continues at target, or at the next instruction */
	ARCH_FLOW_JUMP,	  /* continues at target */
	ARCH_FLOW_SWITCH, /* continues somewhere in the function */
	ARCH_FLOW_EXIT,	  /* leaves the function: returns, jumps to another, traps */
};

enum arch_sp {
	ARCH_SP_SAME,
	ARCH_SP_ADD,	 /* += sp_n */
	ARCH_SP_FROM,	 /* = sp_reg + sp_n */
	ARCH_SP_ADD_REG, /* += sp_n * sp_reg, with sp_n 1 or -1 */
	ARCH_SP_LOST,
};

struct arch_frame_insn {
	uint8_t length;
	uint8_t flow;		  /* enum arch_flow */
	uint8_t sp;		  /* enum arch_sp */
	bool conditional;	  /* might not be executed */
	uint8_t next_conditional; /* the same for this number of following instructions */
	bool delay;		  /* the next instruction is executed before the flow changes */
	bool prologue;		  /* only found at the start of functions */
	bool has_target;
	uint64_t target;
	uint8_t target_mode;

	uint8_t sp_reg;
	int32_t sp_n;
	uint8_t copy;	  /* set to stack pointer + copy_n (before this instruction) */
	uint8_t add;	  /* register += add_n */
	uint8_t constant; /* register = constant_n; with @more: |= */
	bool more;
	int32_t copy_n, add_n, constant_n;

	/* Registers are stored and loaded in ascending order, in words from the stack pointer +
	 * save_at (after this instruction) and + load_at (before it). */
	uint32_t saves, loads, writes; /* a bit for each register; @writes: other changes */
	int32_t save_at, load_at;

	uint64_t data; /* address of data in the code, not instructions; 0: none */
	uint8_t data_length;
	uint8_t table_entry; /* SWITCH by a table after the instruction: bytes of an entry, an
				offset in halfwords */
};

/* Initial value for every decoder. */
static inline struct arch_frame_insn arch_frame_plain(uint8_t length)
{
	return (struct arch_frame_insn){.length = length,
					.copy = ARCH_NO_REG,
					.add = ARCH_NO_REG,
					.constant = ARCH_NO_REG,
					.sp_reg = ARCH_NO_REG};
}

#endif
