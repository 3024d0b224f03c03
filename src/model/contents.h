/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads a recording file once, to count its items and to check that it is consistent. */
#ifndef MODEL_CONTENTS_H
#define MODEL_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/binaries.h"
#include "formats/chunk.h"
#include "formats/file.h"
#include "lib/err.h"

/* Freed blocks by lifetime: below 1 us, 10 us ... 10,000 s, and longer. */
#define LIFETIMES 12

struct contents {
	struct mp_info info; /* its strings are owned by the reader */
	struct mpf_reader *reader;
	struct binaries binaries;
	uint64_t file_bytes;
	uint64_t items[MPF_KINDS];    /* [enum mpf_item_kind] */
	uint64_t events[EVENT_KINDS]; /* [enum ev_kind] */
	uint64_t lifetime[LIFETIMES], leaked;
	uint64_t culled_blocks, culled_events; /* events that are only in sums */
	uint64_t end_ns;
	bool has_finish;
	const char *truncated; /* why the file is truncated; NULL: it is complete */
	uint64_t unknown_stacks, unknown_hooks; /* ids without a definition */
};

/* Return: 0 with @c filled (to be freed by contents_free()), or a negative errno with @err filled.
 */
int contents_read(const char *path, struct contents *c, struct mp_err *err);
void contents_free(struct contents *c);

#endif
