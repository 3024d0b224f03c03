/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A short code sequence that memprof searches for in a target's text, or writes there. */
#ifndef ARCH_CODE_H
#define ARCH_CODE_H

#include <stdint.h>

struct arch_code {
	uint8_t bytes[15];
	uint8_t length; /* 0: none */
	uint8_t pops;	/* of syscall_return: bytes that it pops before it returns */
};

#endif
