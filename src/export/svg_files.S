/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The scripts and styles of graphs inside the memprof binary, as strings; for flame.c and plot.c. */
	.section .note.GNU-stack, "", %progbits
	.section .rodata
	.macro	string name, file
	.globl	\name
\name:
	.incbin	"\file"
	.byte	0
	.endm
	string	flame_js, src/export/flame.js
	string	flame_css, src/export/flame.css
	string	plot_js, src/export/plot.js
	string	plot_css, src/export/plot.css
