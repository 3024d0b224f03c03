/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files inside the memprof binary, as strings; for answers/index.c. */
	.section .note.GNU-stack, "", %progbits
	.section .rodata
	.globl	openapi_json
openapi_json:
	.incbin	"src/server/openapi.json"
	.byte	0
