/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks: which registers an unwinder keeps, how frames and signal frames look, and what the code
 * of functions without unwind tables says about their frames. */
#ifndef ARCH_UNWIND_H
#define ARCH_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/code.h"
#include "arch/frame.h"
#include "formats/column.h"

#define ARCH_DWARF_REGS 34 /* DWARF register numbers in column[] */
#define ARCH_MAX_CALL	7  /* bytes of the longest call instruction */

struct arch;

/* Code that a signal handler returns to; the stack pointer is then at a frame with the registers of
 * the interrupted code. */
struct arch_trampoline {
	struct arch_code code;
	const int16_t *at; /* by column: offset in the frame, -1: not in it */
};

/* Layout of a signal frame around the word with the interrupted pc, as offsets in bytes from that
 * word (asm/ucontext.h, asm/sigcontext.h): a word of which some bits are known, the interrupted
 * stack pointer, the start and the size of the alternate stack. */
struct arch_signal_frame {
	int16_t flags, sp, alt_start, alt_size;
	uint64_t mask, value;
};

/* Marks that find_frames() reports for an address. */
enum arch_mark {
	ARCH_MARK_START,       /* a function can begin here */
	ARCH_MARK_BEHIND_JUMP, /* same, if @target starts a function, too (a jump leads there) */
	ARCH_MARK_FRAME, /* the frame is set up: CFA - 2 words has the caller's frame pointer */
};
typedef void arch_mark_fn(void *ctx, enum arch_mark mark, uint64_t addr, uint64_t target);

struct arch_unwind {
	/* The column (formats/column.h) of each DWARF register, -1: not kept; and a bit for each
	 * column that a function preserves.  DWARF's number of the return address is UW_REG_PC if
	 * no other register has that column (x86-64), else UW_REG_LR. */
	int8_t column[ARCH_DWARF_REGS];
	uint32_t preserved;
	/* Bytes that a call pushes; 0: it leaves the return address in UW_REG_LR. */
	uint8_t call_push;
	uint32_t red_zone; /* bytes below the stack pointer that belong to the thread */
	struct arch_signal_frame signal_frame;
	/* Signal trampolines, until one of length 0; NULL: they have call frame information. */
	const struct arch_trampoline *trampolines;

	/**
	 * frame_insn() - what an instruction does to its function's frame
	 * NULL if all code has unwind tables.
	 * @code, @size: bytes at @addr
	 * @mode: the instruction set, as in bit 0 of a function's address
	 * Return: false if @size is less than an instruction.
	 */
	bool (*frame_insn)(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
			   uint8_t mode, struct arch_frame_insn *insn);

	/**
	 * find_frames() - mark where functions begin and frame pointers are set up
	 * Decides by bytes, without decoding instructions.  NULL: frame_insn() is used.
	 * @code, @size: bytes at @addr
	 * @mark: called with @ctx; starts are not reported in ascending order
	 */
	void (*find_frames)(const uint8_t *code, size_t size, uint64_t addr, arch_mark_fn *mark,
			    void *ctx);

	/* Does @code end with a call instruction?  @size: ARCH_MAX_CALL; NULL if there is no
	 * find_frames(). */
	bool (*ends_in_call)(const uint8_t *code, size_t size);
};

#endif
