/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What grew between looks (look.h) at one program.  Lines are matched by their way from the root: the
 * root's kind, module and name, and then the types, or without a type the sizes, of the blocks on the
 * way.  Addresses play no part.
 *
 * Tables and buffers that grow change their size.  So blocks without a type that are few below
 * their line in each look are one line, whatever their sizes.
 */
#ifndef LEAKS_GROWTH_GROWTH_H
#define LEAKS_GROWTH_GROWTH_H

#include "leaks/growth/look.h"
#include "leaks/growth/trend.h"

/* Blocks of one size are few if no look has more: of small blocks, and of those of 1 KiB and more. */
#define GROWTH_FEW	 1
#define GROWTH_FEW_LARGE 16

#define GROWTH_MAX_LOOKS 100

struct growth_amount {
	bool present;
	uint64_t bytes, blocks; /* of a line: retained */
	uint64_t count, own;	/* of a line of blocks: those of the line itself */
};

struct growth_line {
	const struct look_line *like; /* in the last look that has the line */
	bool various;		      /* few blocks without a type, of any size */
	bool
	    unlisted; /* where a look does not have it, it can be among the lines too small to list */
	struct trend bytes, blocks;
	struct growth_amount *at;	  /* by look */
	struct growth_line *child, *next; /* sorted by the change in bytes, largest first */
};

struct growth_type {
	const struct look_type *like;
	bool various, unlisted; /* as above; only large blocks are put together */
	struct trend bytes, blocks;
	struct growth_amount *at; /* by look */
};

typedef VEC(struct growth_type) growth_types;

struct heap_growth {
	size_t n; /* looks */
	const struct look *const *look;
	bool same_process; /* all looks are of one run, so that there are times and rates */
	bool same_build;   /* no two looks are known to be of different builds */
	double *seconds;   /* since the first look; 0 unless same_process */
	struct growth_amount *live, *unreached; /* by look */
	struct trend live_bytes, live_blocks, unreached_bytes;
	struct growth_line *all;
	growth_types types;	 /* as lines; sorted like them */
	growth_types containers; /* their .count and .blocks are elements */
};

/**
 * growth_make() - compare looks
 * @g: filled; call growth_free() in any case
 * @look: @n of them (2 to GROWTH_MAX_LOOKS), in order of time; must stay
 * Return: 0; -EINVAL: the looks are of different programs, or of one process but not in order of
 * time; -ENOMEM; with @err.
 */
int growth_make(struct heap_growth *g, const struct look *const *look, size_t n,
		struct mp_err *err);
void growth_free(struct heap_growth *g);

/* What is tolerated. */
struct growth_budget {
	uint64_t bytes;
	double seconds; /* per this time; 0: in all */
};
enum growth_verdict {
	GROWTH_WITHIN,
	GROWTH_ABOVE,
	GROWTH_NO_RATE, /* it grew by more, but not steadily: more looks are needed to tell */
	GROWTH_NO_TIME, /* per time, and the looks are of different runs */
};
/**
 * growth_judge() - compare all live bytes, reachable or not, with a budget
 * A budget in all is exceeded if the last look has more than that above the first.  A budget per
 * time is exceeded, with two looks, if their difference is more; with further looks if they rise
 * (TREND_STEADY, TREND_UNEVEN), and the slope without its standard error is more.
 */
enum growth_verdict growth_judge(const struct heap_growth *g, const struct growth_budget *b);

#endif
