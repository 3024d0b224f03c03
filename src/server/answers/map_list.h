/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The maps of a recording: what was mapped, from when until when, and the memory that it had.
 *
 * A recording has calls of mmap(), mremap() and munmap() by the program and its allocators, and looks at
 * /proc/PID/smaps about every ten seconds, which leave out mappings without memory.  So:
 *
 * - A call that maps memory makes a map.  mremap() ends one and makes another.
 *
 * - What a look has, and no call, makes a map, too: it is older than the recording, or its call is not
 *   recorded.  It exists from that look until the first one that does not have it under the same name,
 *   or the call that unmaps the last part of it.
 *
 * - The kernel joins neighbours that are alike.  If a mapping of a look has parts of several maps, the
 *   memory of each of them at that time is not known.
 *
 * - A map that was unmapped within a second, and whose memory no look has, is left out.
 */
#ifndef SERVER_ANSWERS_MAP_LIST_H
#define SERVER_ANSWERS_MAP_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "lib/vec.h"

struct filter;
struct model;

#define MAP_LIVES UINT64_MAX

/* The memory of a map from a look on, in bytes; only when it changed. */
struct map_use {
	uint64_t time_ns, size, rss, anonymous, swap;
};

/* A call that made or ended a map. */
struct map_source {
	bool known;
	uint32_t tid, stack; /* stack: 0: none */
};

struct map {
	uint64_t start, end;	   /* in a merged recording they contain the process number */
	uint64_t born_ns, died_ns; /* died_ns: MAP_LIVES: not before the end of the recording */
	struct map_source source, ended;
	const char *name;     /* owned by the model, or a constant */
	uint32_t prot, flags; /* PROT_*; MAP_*, if source.known */
	uint64_t peak_rss;
	VEC(struct map_use) uses; /* empty: no look has its memory */
	/* Used by map_list.c: how many parts of it are mapped, and what the present look has of it. */
	uint32_t pieces;
	struct map_use now;
	bool joined; /* with others, in the present look */
};

/* The index of a map is its id: sorted by birth, then address. */
struct map_list {
	VEC(struct map) at;
};

/* Reads the recording again.  Return: 0 with @l filled (to be freed by map_list_free(); its names live as
 * long as @m), or a negative errno with @err and nothing to free. */
int map_list_make(const struct model *m, struct map_list *l, struct mp_err *err);
void map_list_free(struct map_list *l);

/* Return: the address of a map in its process, without the number of the process. */
uint64_t map_address(const struct model *m, const struct map *map);

/**
 * map_list_select() - let only blocks inside one map pass a filter
 * @path: of the recording, which is read twice
 * @id: of the map
 *
 * Return: 0; -EINVAL with @err (MP_EXIT_USAGE) if there is no such map; or another negative errno with @err.
 */
int map_list_select(const char *path, uint64_t id, struct filter *f, struct mp_err *err);

#endif
