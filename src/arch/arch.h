/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The differences between architectures: constant data and pure functions over bytes, so that all
 * of them can be tested on any host.  Nothing here uses ptrace, makes a system call or reads a
 * target's memory.  Chosen by the target's ELF header, not by the host.
 *
 * A new architecture is a folder with one struct arch (regs.c), whose groups the headers below
 * document, and the architecture's part of the agent; doc/recipes/architecture.md lists the files.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stdint.h>
#include <string.h>
#include "arch/emergency.h"
#include "arch/libc.h"
#include "arch/patch.h"
#include "arch/perf.h"
#include "arch/regs.h"
#include "arch/restart.h"
#include "arch/syscall.h"
#include "arch/unwind.h"

struct arch {
	const char *name; /* for example x86_64, as in JSON and folder names */
	uint16_t elf_machine;
	uint8_t elf_class;    /* ELFCLASS64 */
	uint8_t elf_data;     /* ELFDATA2LSB */
	uint8_t word_size;    /* bytes of a pointer and of a word on the stack */
	uint8_t address_bits; /* of addresses of user memory; higher bits are tags or unused */
	uint8_t insn_align;   /* instructions are at multiples of it */
	/* Bits of a function's symbol, and of a return address, that are not part of the address
	 * (Thumb). */
	uint8_t code_bits;
	/* The symbols "$" and one of these letters say what follows in a section, instructions of
	 * which kind or data (ELF for the Arm Architecture, 5.5.5, and for AArch64, 5.5.4).  They
	 * are no functions.  NULL: there are none. */
	const char *mapping_symbols;
	/* The vDSO's clock_gettime() if the agent's time comes from it; NULL: from a counter. */
	const char *vdso_clock;

	struct arch_nr nr;		     /* system call numbers */
	struct arch_regs_ops regs;	     /* a stopped thread's registers */
	struct arch_syscall_ops syscall;     /* the call that it is in, calls for memprof */
	struct arch_restart_ops restart;     /* calls that are interrupted */
	struct arch_emergency_ops emergency; /* the frame that restores a thread */
	struct arch_breakpoint breakpoint;
	struct arch_patch_ops patch; /* hooks */
	struct arch_unwind unwind;   /* registers and frames of the stack */
	struct arch_perf perf;	     /* samples for --via=kernel */
	struct arch_tls tls;	     /* thread-local storage */
	struct arch_guard guard;     /* pointers that glibc mangles */
};

/* Return: the architecture of an ELF header's class, data and machine, or NULL. */
const struct arch *arch_for_elf(uint8_t elf_class, uint8_t elf_data, uint16_t machine);
/* Return: the name of ELF machine @machine, "unknown" if there is no struct arch for it. */
const char *arch_machine_name(uint16_t machine);
/* Return: the architecture that memprof is built for, the only one it can attach to. */
const struct arch *arch_native(void);
/* Return: the word of a target at @at, of the size in @arch, in the byte order of this machine. */
static inline uint64_t arch_word(const struct arch *arch, const void *at)
{
	uint64_t word;
	uint32_t half;

	if (arch->word_size == sizeof(half)) {
		memcpy(&half, at, sizeof(half));
		return half;
	}
	memcpy(&word, at, sizeof(word));
	return word;
}

extern const struct arch arch_x86_64, arch_aarch64, arch_arm, arch_mips64, arch_mips64be;

/* All of these, NULL-terminated. */
extern const struct arch *const arch_all[];

#endif
