/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state of a selection (selection.h), filled by selection.c; read by selection_culled.c. */
#ifndef MODEL_FILTER_SELECTION_STATE_H
#define MODEL_FILTER_SELECTION_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/event.h"
#include "lib/vec.h"
#include "model/filter/filter.h"
#include "model/history/links.h"

#define KIND_FLAGS ((unsigned int)EV_F_NON_MAIN | EV_F_MMAPPED)
#define ALL_FLAGS  0xfu /* a bit for each combination of KIND_FLAGS */

/* From a mark to the next; or from a mapping's first address to the one after its last. */
struct bounds {
	uint64_t from, until;
};

struct selection {
	const struct filter *f;
	uint64_t start_unix_ns, runtime_ns, sample_interval, from, to;
	VEC(uint64_t) alive_at;
	VEC(uint64_t) bits;   /* [ordinal / 64] */
	bool of_chains;	      /* with conditions known only at a chain's end */
	bool of_groups;	      /* with conditions on how many of a group leaked */
	struct links pending; /* chain -> members that wait for its end */
	struct links members; /* chain -> stacks of its members */
	VEC(uint64_t) leaked; /* [stack]: blocks whose chain was never freed */
	uint8_t *stack;	      /* [stack id]: passes */
	uint32_t nstacks;
	VEC(uint32_t) tids; /* that pass, sorted; not used if all_threads */
	bool all_threads;
	VEC(uint32_t) hooks; /* [hook]: bit i: blocks with flags i pass */
	VEC(struct bounds) marked;
	VEC(struct bounds) mapped; /* addresses */
};

/* Return: whether blocks that thread @tid allocated pass. */
bool selection_has_thread(const struct selection *s, uint32_t tid);

#endif
