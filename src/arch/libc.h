/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What C libraries do differently for each architecture: thread-local storage, mangled pointers. */
#ifndef ARCH_LIBC_H
#define ARCH_LIBC_H

#include <stdbool.h>
#include <stdint.h>

/* Thread-local storage (Drepper, "ELF Handling For Thread-Local Storage", 3). */
struct arch_tls {
	/* Source of the thread pointer if there is no regs.get_tp(): the first word of a register
	 * set (NT_ARM_TLS), or a ptrace request (PTRACE_GET_THREAD_AREA).  0: not used. */
	uint32_t regset, request;
	uint16_t bias; /* distance of the thread pointer's value from its nominal place (MIPS:
			  0x7000) */
	bool above;    /* variables are above it, glibc's struct pthread below */
};

/* Location of the secret that glibc mangles pointers with. */
enum arch_guard_kind {
	ARCH_GUARD_NONE, /* pointers are not mangled */
	ARCH_GUARD_TCB,	 /* in the thread control block */
	ARCH_GUARD_LD,	 /* __pointer_chk_guard of the dynamic linker */
};

/* How glibc mangles what setjmp() saves (its pointer_guard.h): XOR with a secret word, then a
 * rotation to the left. */
struct arch_guard {
	enum arch_guard_kind kind;
	uint8_t offset, rotate; /* of the word in the thread control block; bits */
};

#endif
