/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a recording has besides stacks, threads and the history of blocks: hooks, mappings, samples,
 * marks, losses.  Filled by model/facts.c, which also takes the stacks and the names of threads. */
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/vec.h"

enum family { FAMILY_UNKNOWN, FAMILY_GLIBC, FAMILY_JEMALLOC, FAMILY_TCMALLOC, FAMILY_MIMALLOC };

struct model_hook {
	char *name, *module;
	uint8_t kind;
	enum family family; /* model/names/allocator.c */
	bool has_chunks;    /* one of its blocks had properties that only glibc's have */
	uint64_t calls;
};

/* A named moment. */
struct mark {
	uint64_t time_ns;
	char *name;
};

/* A call of mallopt(). */
struct model_mallopt {
	uint64_t time_ns;
	uint32_t tid, stack;
	int32_t param, value, result;
};

struct facts {
	VEC(struct model_hook) hooks;
	VEC(struct model_mallopt) mallopts;
	VEC(struct mp_module) modules;	    /* paths owned */
	VEC(struct mp_map_usage) map_usage; /* by time, then address; paths owned */
	uint64_t mapped_bytes, inner_maps, unmaps;
	uint64_t culled_events; /* that are only in sums */
	VEC(struct mp_sample) samples;
	VEC(struct mark) marks;
	struct mp_losses losses;
	struct mp_finish finish;
	bool has_finish;
	uint64_t end_ns; /* of the last event, or the end of the recording */
};

struct model;
/* Both add the facts to @m.  Return: 0 or a negative errno. */
int facts_event(struct model *m, const struct mp_event *ev);
int facts_item(struct model *m, const struct mpf_item *it);
void facts_free(struct facts *f);

/* Return: the name of a parameter of mallopt(); NULL: an unknown one. */
const char *mallopt_name(int32_t param);

/* The name of a mapping; never NULL. */
const char *map_usage_name(const struct mp_map_usage *u);

#endif
