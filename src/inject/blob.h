/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The agent's ELF file, which is embedded in memprof. */
#ifndef INJECT_BLOB_H
#define INJECT_BLOB_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/check.h"

/* Entries in addition to enum ss_hook_kind: malloc and calloc that call no other hooked function
 * (sampling mode), allocations that are filled with zeros, frees that are recorded with their
 * stacks. */
enum { BLOB_LEAF_MALLOC = 15, BLOB_LEAF_CALLOC, BLOB_ZERO_ALLOC, BLOB_FREE_TRACED, BLOB_ENTRIES };

struct blob {
	Elf *elf;
	const uint8_t *text;	      /* the agent's image from its address 0 */
	size_t text_length;	      /* bytes of the image */
	size_t mapped_length;	      /* rounded up to pages; the gate follows */
	uint64_t entry[BLOB_ENTRIES]; /* by enum ss_hook_kind, offsets from the image's address 0 */
	uint64_t sample_entry[BLOB_ENTRIES];
};

/* Return: 0, or -ENOEXEC if the embedded file is not as the build makes it. */
__must_check int blob_open(struct blob *b);
void blob_close(struct blob *b);

#endif
