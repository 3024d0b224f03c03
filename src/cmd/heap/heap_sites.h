/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the blocks of each line of memprof heap were allocated, according to a recording of the
 * process. */
#ifndef CMD_HEAP_HEAP_SITES_H
#define CMD_HEAP_HEAP_SITES_H

#include "join/recording_of.h"
#include "heaps/census.h"
#include "leaks/retained/retained.h"
#include "model/places.h"

/* The blocks of one line. */
struct heap_site {
	uint64_t known;		/* bytes of blocks that the recording has */
	uint64_t bytes;		/* of them, from .at */
	const struct frame *at; /* the line of code that allocated most; NULL: nothing is known */
	const char *type;	/* that all known blocks have, by their stacks; or NULL */
};

struct heap_sites {
	struct recording_of rec;
	struct places places;
	struct heap_site *of; /* by number of line, from 1; NULL: there is no recording */
	uint32_t lines;
	struct intern *types;
	VEC(char *) type; /* by id - 1 */
	uint64_t known_count, known_bytes, unknown_count, unknown_bytes;
};

/**
 * heap_sites_make() - look the blocks up in the recording
 * @s: .rec after recording_of_find(); without a recording nothing is done
 * @c: the census of the snapshot
 * @line_of: by block of @c: the number of its line, or 0
 * @lines: highest number of a line
 * @taken_ns: CLOCK_MONOTONIC at the snapshot
 * Return: 0 or -errno with @err; call heap_sites_free() in any case.
 */
int heap_sites_make(struct heap_sites *s, const struct census *c, const uint32_t *line_of,
		    uint32_t lines, uint64_t taken_ns, struct mp_err *err);
/* Names the lines below @l whose blocks have no name, but are of one type by their stacks.  Return:
 * 0 or -ENOMEM. */
int heap_sites_name(const struct heap_sites *s, struct retained_line *l);
/* Return: what is known about a line, or NULL. */
const struct heap_site *heap_sites_of(const struct heap_sites *s, uint32_t line);
void heap_sites_free(struct heap_sites *s);

#endif
