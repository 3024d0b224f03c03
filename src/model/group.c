/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/group.h"

#include <math.h>
#include <string.h>

#define SMALLEST_WEIGHT 2

void group_add_unseen(struct group *g, bool thinned)
{
	double each = SMALLEST_WEIGHT, bytes;

	if (g->weights > 0) {
		each = g->squares / g->weights;
		bytes = g->weighted_bytes / g->weights;
	} else if (thinned && g->singles) {
		bytes = (double)g->single_bytes / (double)g->singles;
		if (g->allocations) {
			g->variance_allocations += each * (each - 1);
			g->variance_allocated += each * (each - 1) * bytes * bytes;
		}
	} else {
		return;
	}
	g->variance_blocks += each * (each - 1);
	g->variance_live += each * (each - 1) * bytes * bytes;
}

double group_error(double variance)
{
	/* Blocks that were added and removed leave a rounding error. */
	return variance > 0 ? sqrt(variance) : 0;
}

uint64_t group_cost(const struct group *g, enum cost cost)
{
	switch (cost) {
	case COST_LEAKED:
		return g->live_bytes;
	case COST_ALLOCATED:
		return g->allocated_bytes;
	case COST_COUNT:
		return g->allocations;
	case COST_PEAK:
		return g->peak_bytes;
	case COST_TEMPORARY:
		return g->temporary;
	case COST_MAPPED:
		return g->map_bytes;
	case COST_FAULTED:
		return g->allocated_bytes;
	case COST_FAULTS:
		return g->allocations;
	case COST_MAJOR:
		return g->major;
	}
	return 0;
}

uint64_t group_count(const struct group *g, enum cost cost)
{
	switch (cost) {
	case COST_LEAKED:
		return g->live_blocks;
	case COST_PEAK:
		return g->peak_blocks;
	case COST_TEMPORARY:
		return g->temporary;
	case COST_MAPPED:
		return g->maps;
	case COST_MAJOR:
		return g->major;
	default:
		return g->allocations;
	}
}

const char *cost_text(enum cost cost)
{
	static const char *const text[] = {
	    "live bytes",	 "allocated bytes",	  "allocations",
	    "bytes at the peak", "temporary allocations", "bytes mapped",
	    "bytes faulted in",	 "page faults",		  "major page faults"};

	return text[cost];
}

bool cost_is_bytes(enum cost cost)
{
	return cost == COST_LEAKED || cost == COST_ALLOCATED || cost == COST_PEAK ||
	       cost == COST_MAPPED || cost == COST_FAULTED;
}

bool cost_is_of_faults(enum cost cost)
{
	return cost >= COST_FAULTED;
}

const char *cost_unit(enum cost cost)
{
	if (cost_is_of_faults(cost))
		return "fault";
	if (cost == COST_MAPPED)
		return "mapping";
	return cost == COST_LEAKED || cost == COST_PEAK ? "block" : "allocation";
}

void group_add(struct group *sum, const struct group *g)
{
	sum->allocations += g->allocations;
	sum->major += g->major;
	sum->huge += g->huge;
	sum->huge_bytes += g->huge_bytes;
	sum->frees += g->frees;
	sum->allocated_bytes += g->allocated_bytes;
	sum->usable_bytes += g->usable_bytes;
	sum->temporary += g->temporary;
	sum->temporary_bytes += g->temporary_bytes;
	sum->live_blocks += g->live_blocks;
	sum->live_bytes += g->live_bytes;
	sum->live_usable += g->live_usable;
	sum->peak_bytes += g->peak_bytes;
	sum->peak_blocks += g->peak_blocks;
	sum->uncertain_blocks += g->uncertain_blocks;
	sum->maps += g->maps;
	sum->map_bytes += g->map_bytes;
	sum->variance_allocations += g->variance_allocations;
	sum->variance_allocated += g->variance_allocated;
	sum->variance_blocks += g->variance_blocks;
	sum->variance_live += g->variance_live;
}

bool cost_parse(const char *text, enum cost *cost)
{
	static const char *const name[] = {"live",   "allocated", "count",  "peak", "temporary",
					   "mapped", "faulted",	  "faults", "major"};

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if (!strcmp(text, name[i])) {
			*cost = (enum cost)i;
			return true;
		}
	}
	return false;
}
