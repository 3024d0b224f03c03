/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* perf samples with user registers (asm/perf_regs.h), for --via=kernel. */
#ifndef ARCH_PERF_H
#define ARCH_PERF_H

#include <stdint.h>

#define ARCH_ARGS	  5
#define ARCH_ARG_ON_STACK 255 /* value in arch_perf.arg */

struct arch_perf {
	uint64_t regs_mask; /* registers to request; 0: --via=kernel is not supported */
	int8_t column[64];  /* their columns (formats/column.h), -1: none */
	/* Which of them have a call's first arguments and its result. */
	uint8_t arg[ARCH_ARGS], result;
};

#endif
