/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/filter/filter.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a value is parsed, and the type of its member in struct filter. */
enum value_kind {
	TIME,		  /* struct amount */
	TIMES,		  /* alive_at: can be given several times */
	DURATION_PERCENT, /* struct amount */
	COUNT_PERCENT,	  /* struct amount */
	INTEGER,	  /* uint64_t, a side of a struct range */
	BYTES,
	DURATION,
	LIFETIME,
	REGEX,	   /* struct pattern * */
	BACKTRACE, /* a list: can be given several times */
	THREAD,	   /* struct texts: can be given several times */
	MARKER,
	MAP,
	ALLOCATOR,
	SUPPRESSIONS, /* a file; can be given several times */
	CHOICE,	      /* clears bits in filter.allocator_choice */
};

struct row {
	const char *name;
	enum value_kind kind;
	size_t at;
	const char *help;
};

#define AT(member) offsetof(struct filter, member)

static const struct row table[] = {
    {"from", TIME, AT(from), "allocated at this time or later"},
    {"to", TIME, AT(to), "allocated at this time or earlier"},
    {"alive_at", TIMES, AT(alive_at), "alive at this time (given again: at all of them)"},
    {"lifetime", LIFETIME, AT(lifetime), "how the blocks end (kinds: doc/filters.md)"},
    {"lifetime_min", DURATION, AT(lifetime_ns.min), "lifetime (until the end if not freed)"},
    {"lifetime_max", DURATION, AT(lifetime_ns.max), NULL},
    {"address_min", INTEGER, AT(address.min), "address"},
    {"address_max", INTEGER, AT(address.max), NULL},
    {"size_min", BYTES, AT(size.min), "requested bytes"},
    {"size_max", BYTES, AT(size.max), NULL},
    {"first_size_min", BYTES, AT(first_size.min), "requested bytes of the chain's first block"},
    {"first_size_max", BYTES, AT(first_size.max), NULL},
    {"last_size_min", BYTES, AT(last_size.min), "requested bytes of the chain's last block"},
    {"last_size_max", BYTES, AT(last_size.max), NULL},
    {"chain_length_min", INTEGER, AT(chain_length.min), "blocks in the chain of reallocs"},
    {"chain_length_max", INTEGER, AT(chain_length.max), NULL},
    {"position_in_chain_min", INTEGER, AT(chain_position.min), "position in the chain, from 0"},
    {"position_in_chain_max", INTEGER, AT(chain_position.max), NULL},
    {"chain_lifetime_min", DURATION, AT(chain_lifetime_ns.min),
     "lifetime of the whole chain of reallocs"},
    {"chain_lifetime_max", DURATION, AT(chain_lifetime_ns.max), NULL},
    {"backtrace_depth_min", INTEGER, AT(depth.min), "number of frames, including inlined ones"},
    {"backtrace_depth_max", INTEGER, AT(depth.max), NULL},
    {"backtraces", BACKTRACE, AT(backtraces),
     "the stack with this backtrace_id (given again: any of them)"},
    {"suppress", SUPPRESSIONS, AT(suppress),
     "no frame matches a line of leak:PATTERN in the file (as for LeakSanitizer)"},
    {"function_regex", REGEX, AT(function.want), "a frame's function matches"},
    {"source_regex", REGEX, AT(source.want), "the same frame's source file matches"},
    {"library_regex", REGEX, AT(library.want), "the same frame's library matches"},
    {"negative_function_regex", REGEX, AT(function.reject), "no frame's function matches"},
    {"negative_source_regex", REGEX, AT(source.reject), "no frame's source file matches"},
    {"negative_library_regex", REGEX, AT(library.reject), "no frame's library matches"},
    {"thread", THREAD, AT(threads),
     "allocated by this thread, id or name (given again: any of them)"},
    {"marker", MARKER, AT(markers),
     "allocated after this mark, before the next (given again: any of them)"},
    {"from_map", MAP, AT(maps),
     "in a mapping of this name, or with this address (given again: any of them)"},
    {"allocator", ALLOCATOR, AT(allocator),
     "the allocator that returned it (given again: any of them)"},
    {"mmaped", CHOICE, AT(allocator_choice), "glibc: whether the block is a mapping of its own"},
    {"arena", CHOICE, AT(allocator_choice), "glibc: which arena"},
    {"jemalloc", CHOICE, AT(allocator_choice), "from jemalloc"},
    {"group_allocations_min", INTEGER, AT(group_allocations.min),
     "allocations with the same stack"},
    {"group_allocations_max", INTEGER, AT(group_allocations.max), NULL},
    {"group_interval_min", DURATION_PERCENT, AT(group_interval_min),
     "time from the group's first allocation to its last"},
    {"group_interval_max", DURATION_PERCENT, AT(group_interval_max), NULL},
    {"group_leaked_allocations_min", COUNT_PERCENT, AT(group_leaked_min),
     "allocations of the group that were never freed (a realloc is not a free)"},
    {"group_leaked_allocations_max", COUNT_PERCENT, AT(group_leaked_max), NULL},
    {"bytehound_group_leaked_allocations_min", COUNT_PERCENT, AT(group_unfreed_min),
     "the same, but a realloc counts as a free"},
    {"bytehound_group_leaked_allocations_max", COUNT_PERCENT, AT(group_unfreed_max), NULL},
    {"group_max_total_usage_first_seen_min", TIME, AT(group_time_min),
     "time at which the group's live bytes first reached their maximum"},
    {"group_max_total_usage_first_seen_max", TIME, AT(group_time_max), NULL},
};

#define ROWS (sizeof(table) / sizeof(table[0]))
_Static_assert(ROWS <= 64, "filter.given has 64 bits");

static const char *const lifetimes[] = {
    [LIFETIME_ALL] = "all",
    [LIFETIME_ONLY_LEAKED] = "only_leaked",
    [LIFETIME_ONLY_CHAIN_LEAKED] = "only_chain_leaked",
    [LIFETIME_ONLY_TEMPORARY] = "only_temporary",
    [LIFETIME_ONLY_WHOLE_GROUP_LEAKED] = "only_whole_group_leaked",
    [LIFETIME_ONLY_NOT_DEALLOCATED_IN_CURRENT_RANGE] = "only_not_deallocated_in_current_range",
    [LIFETIME_ONLY_DEALLOCATED_IN_CURRENT_RANGE] = "only_deallocated_in_current_range",
    [LIFETIME_BYTEHOUND_ONLY_TEMPORARY] = "bytehound_only_temporary",
    [LIFETIME_BYTEHOUND_ONLY_WHOLE_GROUP_LEAKED] = "bytehound_only_whole_group_leaked",
};

static const char *const allocators[] = {
    [ALLOCATOR_MAIN_ARENA] = "main_arena", [ALLOCATOR_OTHER_ARENA] = "other_arena",
    [ALLOCATOR_MMAPPED] = "mmapped",	   [ALLOCATOR_JEMALLOC] = "jemalloc",
    [ALLOCATOR_TCMALLOC] = "tcmalloc",	   [ALLOCATOR_MIMALLOC] = "mimalloc",
    [ALLOCATOR_OTHER] = "other",
};

/* Prefixes of the conditions that page faults cannot meet: a page is not freed, not reallocated and
 * not from an allocator. */
static const char *const of_blocks[] = {
    "alive_at",		 "lifetime",  "first_size", "last_size", "chain",
    "position_in_chain", "allocator", "mmaped",	    "arena",	 "jemalloc",
    "group_leaked",	 "bytehound", "group_max"};

#define BIT(a)	   (1u << ALLOCATOR_##a)
#define GLIBC_BITS (BIT(MAIN_ARENA) | BIT(OTHER_ARENA) | BIT(MMAPPED))
#define ALL_BITS   ((1u << ALLOCATORS) - 1)

/* bytehound's names for some of the allocators.  Its arena is a flag of blocks, not set for mmapped
 * ones. */
static const struct {
	const char *name, *value;
	uint32_t keep;
} choices[] = {
    {"mmaped", "yes", BIT(MMAPPED)},
    {"mmaped", "no", GLIBC_BITS & ~BIT(MMAPPED)},
    {"arena", "main", BIT(MAIN_ARENA) | BIT(MMAPPED)},
    {"arena", "non_main", BIT(OTHER_ARENA)},
    {"jemalloc", "yes", BIT(JEMALLOC)},
    {"jemalloc", "no", ALL_BITS & ~BIT(JEMALLOC)},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void filter_init(struct filter *f)
{
	memset(f, 0, sizeof(*f));
	f->allocator = f->allocator_choice = ALL_BITS;
	for (size_t i = 0; i < ROWS; i++) {
		enum value_kind k = table[i].kind;
		size_t n = strlen(table[i].name);

		if ((k == INTEGER || k == BYTES || k == DURATION) &&
		    !strcmp(table[i].name + n - 4, "_max"))
			*(uint64_t *)((char *)f + table[i].at) = UINT64_MAX;
	}
}

static void texts_free(struct texts *t)
{
	vec_for_each (&t->list, text)
		free(*text);
	vec_free(&t->list);
}

void filter_free(struct filter *f)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (table[i].kind == REGEX)
			pattern_free(*(struct pattern **)((char *)f + table[i].at));
	}
	texts_free(&f->threads);
	texts_free(&f->markers);
	texts_free(&f->maps);
	vec_free(&f->spans);
	vec_free(&f->alive_at);
	vec_free(&f->backtraces);
	suppressions_free(&f->suppress);
	filter_init(f);
}

/* Are the names equal?  '_' in @a also matches '-'. */
static bool same_words(const char *a, const char *b)
{
	for (; *a && (*a == *b || (*a == '_' && *b == '-')); a++, b++)
		;
	return !*a && !*b;
}

static const char *value_text(enum value_kind kind)
{
	static const char *const text[] = {
	    [TIME] = "a time such as 10s, 1m30s, 50% (of the runtime) or Unix milliseconds",
	    [TIMES] = "a time such as 10s, 1m30s, 50% (of the runtime) or Unix milliseconds",
	    [DURATION_PERCENT] = "a duration such as 10s, 1m30s, 100ms or 50% (of the runtime)",
	    [COUNT_PERCENT] = "a number or a percentage such as 10 or 50%",
	    [INTEGER] = "a whole number",
	    [BYTES] = "a size such as 100, 64k or 1.5M",
	    [DURATION] = "a duration such as 10s, 1m30s or 100ms",
	    [LIFETIME] = ("one of all, only_leaked, only_chain_leaked, only_temporary, "
			  "only_whole_group_leaked, only_not_deallocated_in_current_range, "
			  "only_deallocated_in_current_range, bytehound_only_temporary, "
			  "bytehound_only_whole_group_leaked"),
	    [REGEX] = "a regular expression",
	    [BACKTRACE] = "a backtrace_id",
	    [THREAD] = "the id or name of a thread",
	    [MARKER] = "the name of a mark",
	    [MAP] = "the name of a mapping, or an address in it",
	    [ALLOCATOR] = ("one of main_arena, other_arena, mmapped, jemalloc, tcmalloc, mimalloc, "
			   "other"),
	};

	return text[kind];
}

#define LONGEST_NAME 64

/* The name as the command line's option.  @text: LONGEST_NAME bytes.  Return: @text. */
static const char *option_text(const char *name, char *text)
{
	snprintf(text, LONGEST_NAME, "--%s", name);
	for (char *p = text; *p; p++)
		*p = *p == '_' ? '-' : *p;
	return text;
}
#define option(name) option_text(name, (char[LONGEST_NAME]){0})

static bool find_word(const char *const *words, size_t n, const char *value, uint32_t *index)
{
	for (size_t i = 0; i < n; i++) {
		if (same_words(words[i], value)) {
			*index = (uint32_t)i;
			return true;
		}
	}
	return false;
}

/* ------------------------------------------------------------------ setting -- */

static int set_choice(struct filter *f, const struct row *row, const char *label, const char *value,
		      struct mp_err *err)
{
	const char *a = NULL, *b = NULL;

	for (size_t i = 0; i < COUNT(choices); i++) {
		if (strcmp(choices[i].name, row->name) != 0)
			continue;
		if (same_words(choices[i].value, value)) {
			f->allocator_choice &= choices[i].keep;
			return 0;
		}
		a = a ? a : choices[i].value;
		b = choices[i].value;
	}
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: '%.100s' is neither %s nor %s", label,
		       value, a, b);
}

/* The first value replaces the default, all allocators; further values add to it. */
static bool set_allocator(struct filter *f, bool again, const char *value)
{
	uint32_t i;

	if (!find_word(allocators, ALLOCATORS, value, &i))
		return false;
	f->allocator = (again ? f->allocator : 0) | 1u << i;
	return true;
}

static int add_text(struct texts *t, const char *value)
{
	if (vec_push(&t->list, NULL))
		return -ENOMEM;
	t->list.at[t->list.n - 1] = strdup(value);
	if (t->list.at[t->list.n - 1])
		return 1;
	t->list.n--;
	return -ENOMEM;
}

/* Return: 1 set; 0 not a valid value; or a negative errno. */
static int set_list(struct filter *f, const struct row *row, bool again, const char *value)
{
	struct amount time;
	uint64_t n;

	switch (row->kind) {
	case TIMES:
		if (!amount_time(value, &time))
			return 0;
		return vec_push(&f->alive_at, time) ? -ENOMEM : 1;
	case BACKTRACE:
		if (!amount_integer(value, &n) || n > UINT32_MAX)
			return 0;
		return vec_push(&f->backtraces, (uint32_t)n) ? -ENOMEM : 1;
	case THREAD:
	case MARKER:
	case MAP:
		return *value ? add_text((struct texts *)((char *)f + row->at), value) : 0;
	default:
		return set_allocator(f, again, value);
	}
}

static bool set_single(const struct row *row, const char *value, void *at)
{
	uint32_t i;

	switch (row->kind) {
	case TIME:
		return amount_time(value, at);
	case DURATION_PERCENT:
		return amount_duration_or_percent(value, at);
	case COUNT_PERCENT:
		return amount_count_or_percent(value, at);
	case INTEGER:
		return amount_integer(value, at);
	case BYTES:
		return amount_bytes(value, at);
	case DURATION:
		return amount_duration(value, at);
	default:
		if (!find_word(lifetimes, COUNT(lifetimes), value, &i))
			return false;
		*(enum lifetime *)at = (enum lifetime)i;
		return true;
	}
}

static bool is_list(enum value_kind k)
{
	return k == TIMES || k == BACKTRACE || k == THREAD || k == MARKER || k == MAP ||
	       k == ALLOCATOR || k == SUPPRESSIONS;
}

static int set_suppressions(struct filter *f, const char *label, const char *file,
			    struct mp_err *err)
{
	struct mp_err why = {0};
	int ret = suppressions_read(&f->suppress, file, &why);

	return ret < 0 ? mp_fail(err, MP_EXIT_USAGE, ret, "%s: %s", label, why.what) : ret;
}

static int set_condition(struct filter *f, uint32_t index, const char *label, const char *value,
			 struct mp_err *err)
{
	const struct row *row = &table[index];
	bool again = f->given >> index & 1;
	void *at = (char *)f + row->at;
	int ret;

	if (again && !is_list(row->kind))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: given twice", label);
	if (row->kind == REGEX)
		ret = pattern_new(label, value, at, err);
	else if (row->kind == CHOICE)
		ret = set_choice(f, row, label, value, err);
	else if (row->kind == SUPPRESSIONS)
		ret = set_suppressions(f, label, value, err);
	else
		ret = is_list(row->kind) ? set_list(f, row, again, value)
					 : set_single(row, value, at);
	if (ret < 0)
		return ret;
	if (!ret && row->kind != REGEX && row->kind != CHOICE && row->kind != SUPPRESSIONS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: '%.100s' is not %s", label, value,
			       value_text(row->kind));
	f->given |= 1ull << index;
	return 0;
}

int filter_set_as(struct filter *f, const char *name, const char *label, const char *value,
		  struct mp_err *err)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		if (same_words(table[i].name, name))
			return set_condition(f, i, label ? label : option(table[i].name), value,
					     err);
	}
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "'%.100s' is not the name of a filter", name);
}

int filter_set(struct filter *f, const char *name, const char *value, struct mp_err *err)
{
	return filter_set_as(f, name, NULL, value, err);
}

int filter_add_span(struct filter *f, const struct filter_span *span)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		if (table[i].kind == MAP)
			f->given |= 1ull << i;
	}
	return vec_push(&f->spans, *span);
}

static bool is_of_blocks(const char *name)
{
	for (size_t i = 0; i < COUNT(of_blocks); i++) {
		if (!strncmp(name, of_blocks[i], strlen(of_blocks[i])))
			return true;
	}
	return false;
}

int filter_of_faults(const struct filter *f, struct mp_err *err)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (f->given >> i & 1 && is_of_blocks(table[i].name))
			return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				       "%s: this filter is not for page faults, and this is a "
				       "recording of page faults",
				       option(table[i].name));
	}
	return 0;
}

bool filter_describe(uint32_t i, struct filter_name *n)
{
	static const char *const value[] = {
	    [TIME] = "TIME",	     [TIMES] = "TIME",	   [DURATION_PERCENT] = "DURATION|%",
	    [COUNT_PERCENT] = "N|%", [INTEGER] = "N",	   [BYTES] = "BYTES",
	    [DURATION] = "DURATION", [LIFETIME] = "KIND",  [REGEX] = "REGEX",
	    [BACKTRACE] = "ID",	     [THREAD] = "ID|NAME", [MARKER] = "NAME",
	    [MAP] = "NAME|ADDRESS",  [ALLOCATOR] = "KIND", [CHOICE] = "CHOICE",
	    [SUPPRESSIONS] = "FILE",
	};

	if (i >= ROWS)
		return false;
	*n = (struct filter_name){table[i].name, value[table[i].kind], table[i].help};
	return true;
}

const char *allocator_text(enum allocator a)
{
	return allocators[a];
}
