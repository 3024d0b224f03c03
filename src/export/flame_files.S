/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The script and the style of flame graphs inside the memprof binary, as strings; for flame.c. */
	.section .note.GNU-stack, "", %progbits
	.section .rodata
	.globl	flame_js, flame_css
flame_js:
	.incbin	"src/export/flame.js"
	.byte	0
flame_css:
	.incbin	"src/export/flame.css"
	.byte	0
