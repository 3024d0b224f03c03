/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The page that web/ was built to, inside the memprof binary; for html.c.  Empty without npm. */
	.section .note.GNU-stack, "", %progbits
	.section .rodata
	.globl	page_html
	.globl	page_html_end
page_html:
	.incbin	"index.html"
page_html_end:
	.byte	0
