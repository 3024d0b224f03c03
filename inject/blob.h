/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's ELF file, embedded in this program. */
#ifndef INJECT_BLOB_H
#define INJECT_BLOB_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
	Elf *elf;
	const uint8_t *text;  /* image from its address 0 */
	size_t text_length;   /* bytes of the image */
	size_t mapped_length; /* rounded up to pages: the gate page follows */
	uint64_t entry[16];   /* by enum ss_hook_kind, offsets from its address 0 */
};

/* Return: 0, or -ENOEXEC when the embedded file is not what the build made. */
int blob_open(struct blob *b);
void blob_close(struct blob *b);

#endif
