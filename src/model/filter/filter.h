/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Filters: which allocations a report includes.  The command line and all other interfaces use the
 * same table of names; doc/filters.md defines each.  All given conditions must hold.
 */
#ifndef MODEL_FILTER_FILTER_H
#define MODEL_FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "lib/suppressions.h"
#include "lib/vec.h"
#include "model/filter/amount.h"
#include "model/filter/pattern.h"

enum lifetime {
	LIFETIME_ALL,
	LIFETIME_ONLY_LEAKED,
	LIFETIME_ONLY_CHAIN_LEAKED,
	LIFETIME_ONLY_TEMPORARY,
	LIFETIME_ONLY_WHOLE_GROUP_LEAKED,
	LIFETIME_ONLY_NOT_DEALLOCATED_IN_CURRENT_RANGE,
	LIFETIME_ONLY_DEALLOCATED_IN_CURRENT_RANGE,
	LIFETIME_BYTEHOUND_ONLY_TEMPORARY,
	LIFETIME_BYTEHOUND_ONLY_WHOLE_GROUP_LEAKED,
};

/* The allocator that a block came from.  The values are bit numbers in filter.allocator. */
enum allocator {
	ALLOCATOR_MAIN_ARENA, /* of glibc */
	ALLOCATOR_OTHER_ARENA,
	ALLOCATOR_MMAPPED, /* of glibc: a block with its own mapping */
	ALLOCATOR_JEMALLOC,
	ALLOCATOR_TCMALLOC,
	ALLOCATOR_MIMALLOC,
	ALLOCATOR_OTHER,
	ALLOCATORS,
};

/* Bounds are inclusive. */
struct range {
	uint64_t min, max;
};

/* Patterns that must, and must not, match a text of a frame; NULL: not given. */
struct search_pair {
	struct pattern *want, *reject;
};

/* At least one of the texts must match. */
struct texts {
	VEC(char *) list;
};

/* One mapping: blocks in it that were allocated while it existed. */
struct filter_span {
	uint64_t start, end; /* addresses; end: after the last one */
	uint64_t born_ns,
	    died_ns; /* since the start of the recording; died_ns: after the last moment */
};

struct filter {
	uint64_t given; /* bit i: entry i of the table of names was given */
	struct amount from, to;
	VEC(struct amount) alive_at;
	enum lifetime lifetime;
	struct range address, size, first_size, last_size;
	struct range lifetime_ns, chain_lifetime_ns, chain_length, chain_position;
	struct range depth;
	struct search_pair function, source, library;
	VEC(uint32_t) backtraces;
	struct texts threads, markers, maps;
	VEC(struct filter_span) spans;
	struct suppressions suppress;
	uint32_t allocator, allocator_choice; /* bits; an allocator must be in both */
	struct range group_allocations;
	struct amount group_interval_min, group_interval_max;
	struct amount group_leaked_min, group_leaked_max;
	struct amount group_unfreed_min, group_unfreed_max; /* as bytehound counts it */
	struct amount group_time_min, group_time_max;
};

/* Initializes a filter that matches everything; to be freed by filter_free(). */
void filter_init(struct filter *f);
void filter_free(struct filter *f);

/**
 * filter_set() - add a condition
 * @name: its words are joined by '_' or '-'
 * @value: as the user wrote it
 *
 * Return: 0; or -EINVAL or -ENOMEM with @err (MP_EXIT_USAGE) filled: unknown name, bad value, or
 * given twice.  The message has the name as the command line's option.
 */
int filter_set(struct filter *f, const char *name, const char *value, struct mp_err *err);
/* As filter_set(), with another name for the messages.  @label: NULL: as filter_set(). */
int filter_set_as(struct filter *f, const char *name, const char *label, const char *value,
		  struct mp_err *err);

/* Adds the condition that a block overlaps one of the spans so added, and was allocated while that
 * existed.  Return: 0 or -ENOMEM. */
int filter_add_span(struct filter *f, const struct filter_span *span);

/* Return: true if no condition was set. */
static inline bool filter_is_empty(const struct filter *f)
{
	return !f->given;
}

/* Checks that the filter can be applied to page faults, which lack some properties of allocations.
 * Return: 0, or -EINVAL with @err (MP_EXIT_USAGE), which names the condition. */
int filter_of_faults(const struct filter *f, struct mp_err *err);

/* Entry @i of the table: name (words joined by '_'), a description of its value, and a line of
 * help.  Return: false after the last one. */
struct filter_name {
	const char *name, *value, *help;
};
bool filter_describe(uint32_t i, struct filter_name *n);

const char *allocator_text(enum allocator a);

#endif
