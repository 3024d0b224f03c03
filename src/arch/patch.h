/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Changes of a target's code: hooks, for which the first instructions of a function are relocated,
 * and breakpoints. */
#ifndef ARCH_PATCH_H
#define ARCH_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/code.h"

/* One instruction, as far as it matters for patching. */
enum arch_insn_kind {
	ARCH_INSN_PLAIN,       /* position independent: copied */
	ARCH_INSN_PC_RELATIVE, /* data access relative to the pc: the displacement is adjusted */
	ARCH_INSN_JUMP,	       /* direct jump */
	ARCH_INSN_COND_JUMP,   /* direct conditional jump */
	ARCH_INSN_CALL,	       /* direct call */
	ARCH_INSN_INDIRECT,    /* indirect jump or call */
	ARCH_INSN_RETURN,
	ARCH_INSN_SYSCALL,
	ARCH_INSN_TRAP,	       /* breakpoint, undefined instruction: another tool's patch */
	ARCH_INSN_LANDING_PAD, /* endbr64, bti: stays in place */
	ARCH_INSN_INVALID,
};

struct arch_insn {
	enum arch_insn_kind kind;
	uint8_t length;
	bool has_target;
	uint64_t target; /* of a direct branch or a pc-relative operand */
};

/* Reasons why a function cannot be hooked; text by arch_refusal_text(). */
enum arch_refusal {
	ARCH_OK = 0,
	ARCH_REFUSE_SHORT,	 /* the function ends inside the window */
	ARCH_REFUSE_BRANCH_INTO, /* a branch of the function leads into the window */
	ARCH_REFUSE_CALL,	 /* a call is in the window: its return address would move */
	ARCH_REFUSE_INSN,	 /* an instruction that cannot be relocated */
	ARCH_REFUSE_REACH,	 /* island or operand is out of reach */
	ARCH_REFUSE_FOREIGN,	 /* a breakpoint or another tool's jump is at the entry */
	ARCH_REFUSE_RSEQ,	 /* the window is in a restartable sequence (inject/hooks/rseq.h) */
};

/* A planned patch of one function. */
struct arch_patch {
	uint64_t addr;		/* first byte to replace, after a landing pad */
	uint8_t length;		/* bytes replaced (whole instructions) */
	uint8_t insns;		/* instructions replaced */
	uint8_t old_off[8];	/* their offsets from addr */
	uint8_t new_off[8];	/* and their offsets in the relocated code */
	uint8_t new_bytes[24];	/* the bytes for addr: a jump to the slot's entry, padded */
	uint8_t relocated[128]; /* relocated instructions with the jump back */
	uint8_t relocated_length;
};

struct arch_regs;

struct arch_patch_ops {
	uint64_t reach; /* longest distance of the entry jump, in bytes */
	/* 0, or a power of two: the size of an aligned region inside which a shorter jump
	 * suffices. */
	uint64_t region;
	uint64_t far_reach; /* reach of the longer jump, for use if there is no free memory nearer;
			       0: none */
	/* Length of a jump that is several instructions; 0: every jump is a single one. */
	uint8_t long_jump;
	/* A patch's offsets are all positions of the window, including its end, to and from which a
	 * thread can be moved.  A thread inside a group of instructions that is relocated as one
	 * cannot. */
	bool groups;
	/* A write to executable memory by /proc/PID/mem or PTRACE_POKEDATA crashes the kernel if
	 * the page is a huge one. */
	bool huge_write_crashes;

	/**
	 * decode() - decode one instruction
	 * @code, @size: bytes at @addr, which has the code_bits of the function
	 * Return: false if @size is less than an instruction or the instruction is undefined.
	 */
	bool (*decode)(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

	/**
	 * plan() - relocate the entry of a function
	 * @code, @size: the whole function (all bytes of its symbol), mapped at @addr; scanned for
	 *	branches into the window.  @addr has the code_bits of the symbol.
	 * @slot_entry: target of the new jump
	 * @relocated_at: address of the relocated copy
	 * Return: ARCH_OK with @patch filled, or the refusal.
	 */
	enum arch_refusal (*plan)(const uint8_t *code, size_t size, uint64_t addr,
				  uint64_t slot_entry, uint64_t relocated_at,
				  struct arch_patch *patch);

	/**
	 * encode_slot() - the code at a slot's entry: load the descriptor's address into the
	 * scratch register, jump to the agent
	 * @out: at least 48 bytes
	 * @at: its address, with the code_bits of the hooked function
	 * @desc: address of struct ss_desc
	 * @agent_entry: target of the jump
	 * Return: bytes written.
	 */
	size_t (*encode_slot)(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);

	/**
	 * enter() - set the register in which a function expects its own address, @addr
	 * A slot's code overwrites it.  NULL: there is no such register.
	 */
	void (*enter)(struct arch_regs *regs, uint64_t addr);
};

/* Breakpoint instructions. */
struct arch_breakpoint {
	struct arch_code wide, narrow; /* narrow: Thumb code */
	/* The pc of a thread that stopped is so many bytes behind the instruction's address. */
	uint8_t pc_behind;
	bool return_on_stack; /* a call pushes the return address; else it is in a register */
};

/* Return: a constant text such as "a branch of the function goes into its first bytes". */
const char *arch_refusal_text(enum arch_refusal refusal);

#endif
