/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sums of culled blocks (struct mp_culled) that are not in the file yet. */
#ifndef RECORD_CULLING_CULL_SUMS_H
#define RECORD_CULLING_CULL_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct cull_sums;

/* What the blocks of a sum have in common; members as in struct mp_culled.  Without padding. */
struct cull_key {
	uint64_t size;
	uint32_t stack, tid, free_tid;
	uint32_t slice; /* blocks of different slices of time are in different sums */
	uint16_t hook, free_hook;
	uint16_t flags, weight;
};

/* Return: sums without blocks, or NULL when out of memory. */
struct cull_sums *cull_sums_new(void);
void cull_sums_free(struct cull_sums *s);
/* Adds a block.  @born_ns: its allocation; @usable: bytes.  The latest blocks are added later.  Return: 0
 * or a negative errno. */
int cull_sums_add(struct cull_sums *s, const struct cull_key *key, uint64_t born_ns,
		  uint64_t usable, uint64_t lifetime_ns);

/* Calls of the blocks in the sums. */
struct cull_calls {
	uint64_t allocations, frees, reallocs; /* reallocs: two for each, begin and end */
};
struct cull_calls cull_sums_calls(const struct cull_sums *s);
/* Return: the number of different sums, without blocks that are added later. */
uint64_t cull_sums_count(const struct cull_sums *s);
/* Writes the sums and begins anew.  Return: 0 or a negative errno. */
int cull_sums_put(struct cull_sums *s, struct mpf_writer *file);

#endif
