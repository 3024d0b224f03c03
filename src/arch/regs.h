/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The registers of a stopped thread, as the kernel gives them to a tracer. */
#ifndef ARCH_REGS_H
#define ARCH_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_MAX_REGSET 1024

/* Raw general registers, laid out as in the kernel's NT_PRSTATUS register set. */
struct arch_regs {
	_Alignas(16) uint8_t raw[ARCH_MAX_REGSET];
	size_t size; /* bytes in use */
};

/* All functions read and change only the bytes of @regs. */
struct arch_regs_ops {
	size_t regset_size; /* of NT_PRSTATUS */
	uint32_t fp_regset; /* NT_* of the floating point and vector register set */
	/* Words of the kernel's register state that NT_PRSTATUS does not contain: their offsets for
	 * PTRACE_PEEKUSER and their place in arch_regs.raw. */
	struct {
		uint16_t user, at;
	} hidden[2];
	uint8_t nhidden;

	uint64_t (*get_pc)(const struct arch_regs *regs);
	void (*set_pc)(struct arch_regs *regs, uint64_t pc);
	uint64_t (*get_sp)(const struct arch_regs *regs);
	/* Thread pointer; NULL: it is not among the general registers (see struct arch_tls). */
	uint64_t (*get_tp)(const struct arch_regs *regs);
	/* Value of the register in column @n (formats/column.h).  Return: false if there is
	 * none. */
	bool (*get_column)(const struct arch_regs *regs, int n, uint64_t *value);
};

#endif
