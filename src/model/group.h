/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A group: the sums of all allocations with one stack.  Its costs, by which reports sort and weigh
 * stacks. */
#ifndef MODEL_GROUP_H
#define MODEL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* All allocations with the same stack; or all page faults, whose pages then count as allocated. */
struct group {
	/* The members that every allocation and free changes are together, to share cache lines. */
	uint64_t allocations, allocated_bytes, frees, usable_bytes;
	uint64_t live_blocks, live_bytes, live_usable;
	uint64_t peak_epoch; /* the peak of peak_bytes: model/sums/totals.c */
	uint64_t temporary, temporary_bytes;
	uint64_t most_bytes, most_ns; /* its own peak, and when that was first reached */
	uint64_t first_ns, last_ns;   /* of its first and last allocation */
	uint64_t min_size, max_size;  /* of its allocations */
	/* Allocations that count once, of a size that thinning can leave out; some were carried over. */
	uint64_t singles, single_bytes;
	bool carried_singles;
	uint64_t peak_bytes, peak_blocks; /* what it held when the whole heap was at its peak */
	uint64_t told_bytes, told_blocks; /* the same as a culled recording says itself */
	uint64_t major, huge, huge_bytes; /* page faults: major ones, and those of huge pages */
	uint64_t map_bytes, maps; /* mappings made by the program; not the allocator's own */
	/* Allocations with a weight (model/sums/weight.h): sum of weights, of their squares, of bytes. */
	double weights, squares, weighted_bytes;
	/* Of estimates. */
	double variance_allocations, variance_allocated, variance_blocks, variance_live;
	uint64_t uncertain_blocks; /* live blocks whose free might have been lost */
};

/* Adds the sums of @g to @sum; times and the like are not changed. */
void group_add(struct group *sum, const struct group *g);

/*
 * Adds the uncertainty of blocks of a thinned group that left no trace, because none of them
 * happened to be recorded: a typical one represents E = (sum of squares) / (sum of weights), so
 * that about E of them can be live.  If no allocation of the group has a weight, E is 2, the
 * smallest one, provided that the group could be thinned.  To be called once, after the last event.
 * @thinned: allocations were thinned while the group allocated.
 */
void group_add_unseen(struct group *g, bool thinned);

/* Standard error of a sum with this estimated variance. */
double group_error(double variance);

/* The measure by which a report sorts and weighs stacks. */
enum cost {
	COST_LEAKED,
	COST_ALLOCATED,
	COST_COUNT,
	COST_PEAK,
	COST_TEMPORARY,
	COST_MAPPED, /* bytes of mappings that the program made, also of unmapped ones */
	/* Only for a recording of page faults, which has no other costs. */
	COST_FAULTED, /* bytes of the faults' pages */
	COST_FAULTS,
	COST_MAJOR,
};
uint64_t group_cost(const struct group *g, enum cost cost);
/* Return: blocks, for costs in bytes; calls, for the others; faults, for page faults. */
uint64_t group_count(const struct group *g, enum cost cost);
/* The unit of group_count(): block, allocation or fault. */
const char *cost_unit(enum cost cost);
bool cost_is_of_faults(enum cost cost);
/* Parses live, allocated, count, peak, temporary or mapped; for page faults faulted, faults or
 * major.  Return: false if @text is none of them. */
bool cost_parse(const char *text, enum cost *cost);
const char *cost_text(enum cost cost);
bool cost_is_bytes(enum cost cost);

#endif
