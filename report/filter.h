/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Filters: which allocations a report is about.  One table of names serves the command line and
 * every other way to ask; doc/filters.md says exactly what each means.  All given ones must hold.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "lib/vec.h"
#include "report/amount.h"
#include "report/pattern.h"

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

/* Which allocator a block came from; numbers of bits in filter.allocator. */
enum allocator {
	ALLOCATOR_MAIN_ARENA, /* glibc's */
	ALLOCATOR_OTHER_ARENA,
	ALLOCATOR_MMAPPED, /* glibc: a mapping of its own */
	ALLOCATOR_JEMALLOC,
	ALLOCATOR_TCMALLOC,
	ALLOCATOR_MIMALLOC,
	ALLOCATOR_OTHER,
	ALLOCATORS,
};

/* Inclusive. */
struct range {
	uint64_t min, max;
};

/* Positive and negative search of one text of a frame; NULL: not given. */
struct search {
	struct pattern *want, *reject;
};

/* Any of them. */
struct texts {
	VEC(char *) list;
};

struct filter {
	uint64_t given; /* bit: index in the table of names */
	struct amount from, to;
	VEC(struct amount) alive_at;
	enum lifetime lifetime;
	struct range address, size, first_size, last_size;
	struct range lifetime_ns, chain_lifetime_ns, chain_length, chain_position;
	struct range depth;
	struct search function, source, library;
	VEC(uint32_t) backtraces;
	struct texts threads, markers, maps;
	uint32_t allocator, allocator_choice; /* bits; a kind must be in both */
	struct range group_allocations;
	struct amount group_interval_min, group_interval_max;
	struct amount group_leaked_min, group_leaked_max;
	struct amount group_unfreed_min, group_unfreed_max; /* as bytehound counts */
	struct amount group_time_min, group_time_max;
};

/* Matches everything; freed by filter_free(). */
void filter_init(struct filter *f);
void filter_free(struct filter *f);

/**
 * filter_set() - add one condition
 * @name: with '_' or '-' between its words
 * @value: as a person wrote it
 *
 * Return: 0, or -EINVAL, -ENOMEM with @err (MP_EXIT_USAGE) filled: unknown name, bad value, given
 * twice.  The message names the field.
 */
int filter_set(struct filter *f, const char *name, const char *value, struct mp_err *err);

/* Return: true if nothing was set. */
static inline bool filter_is_empty(const struct filter *f)
{
	return !f->given;
}

/* Does the filter ask page faults for what only allocations have?  Return: 0, or -EINVAL with @err
 * (MP_EXIT_USAGE), which names the condition. */
int filter_of_faults(const struct filter *f, struct mp_err *err);

/* The table: name (words joined by '_'), what a value looks like, and one line of help.
 * Return: false behind the last one. */
struct filter_name {
	const char *name, *value, *help;
};
bool filter_describe(uint32_t i, struct filter_name *n);

const char *allocator_text(enum allocator a);

#endif
