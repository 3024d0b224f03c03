/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/rest_filter.h"

#include <errno.h>
#include <string.h>
#include "model/filter/filter.h"

/* A name, or a kind of lifetime, and what model/filter/filter.h calls it; NULL: not available. */
struct other {
	const char *name, *ours;
};

static const struct other names[] = {
    {"alive_at_2", "alive_at"},
    {"group_leaked_allocations_min", "bytehound_group_leaked_allocations_min"},
    {"group_leaked_allocations_max", "bytehound_group_leaked_allocations_max"},
    {"memprof_group_leaked_allocations_min", "group_leaked_allocations_min"},
    {"memprof_group_leaked_allocations_max", "group_leaked_allocations_max"},
    {"bytehound_group_leaked_allocations_min", NULL},
    {"bytehound_group_leaked_allocations_max", NULL},
    /* It names a file, which would be read on this machine for anyone who asks. */
    {"suppress", NULL},
};

static const struct other lifetimes[] = {
    {"only_temporary", "bytehound_only_temporary"},
    {"only_whole_group_leaked", "bytehound_only_whole_group_leaked"},
    {"memprof_only_temporary", "only_temporary"},
    {"memprof_only_whole_group_leaked", "only_whole_group_leaked"},
};

/* Filters of bytehound that memprof refuses, with the reason; an empty value is accepted. */
static const struct other refused[] = {
    {"custom_filter", "memprof runs no scripts; use the other filters"},
    {"deallocation_backtraces", "memprof does not record the stacks of frees"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct other *find_other(const struct other *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(list[i].name, name))
			return &list[i];
	}
	return NULL;
}

/* Return: the filter's name in model/filter/filter.h; NULL: there is none. */
static const char *our_name(const char *name)
{
	const struct other *o = find_other(names, COUNT(names), name);
	struct filter_name f;

	if (o)
		return o->ours;
	for (uint32_t i = 0; filter_describe(i, &f); i++) {
		if (!strcmp(f.name, name))
			return f.name;
	}
	return NULL;
}

bool rest_filter_is(const char *name)
{
	return our_name(name) || find_other(refused, COUNT(refused), name);
}

int rest_filter_set(struct filter *f, const char *name, const char *value, struct mp_err *err)
{
	const struct other *no = find_other(refused, COUNT(refused), name);
	const struct other *kind =
	    !strcmp(name, "lifetime") ? find_other(lifetimes, COUNT(lifetimes), value) : NULL;

	if (no)
		return *value ? mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: %s", name, no->ours) : 0;
	return filter_set_as(f, our_name(name), name, kind ? kind->ours : value, err);
}
