/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's ELF file inside the memprof binary; read by inject/blob.c. */
	.section .note.GNU-stack, "", %progbits
	.section .rodata
	.globl	agent_elf, agent_elf_end
	.hidden	agent_elf, agent_elf_end
	.balign	16
agent_elf:
	.incbin	AGENT_ELF
agent_elf_end:
