/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes calls and jumps of compiled code relative to the program counter, so that the agent runs at
 * any address without a table of addresses.  Included before each of its C files (agent.mk).  Both
 * reach 128 KiB, which the linker checks.
 */
__asm__(".macro jal target\n\tbal \\target\n\t.endm\n"
	".macro j target\n\tb \\target\n\t.endm");
