/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/map_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "formats/session.h"
#include "model/filter/amount.h"
#include "model/filter/filter.h"
#include "model/filter/stack_conditions.h"
#include "model/model.h"
#include "server/answers/ending.h"

const char *const map_lifetime_words[] = {"all", "only_leaked", "only_temporary", NULL};
const char *const map_choice_words[] = {"all", "only_true", "only_false", NULL};

/* ------------------------------------------------------------------ stacks -- */

static int match_stacks(struct map_filter *f, struct model *m, struct mp_err *err)
{
	struct filter conditions;
	int ret = stack_filter_make(f->call, &conditions, &f->needs_stack, err);

	if (ret)
		return ret;
	if (!filter_is_empty(&conditions)) {
		f->stack = malloc(m->stacks.n + 1u);
		if (f->stack) {
			memset(f->stack, 1, m->stacks.n + 1u);
			ret = stacks_match(&conditions, m, f->stack, err);
		} else {
			ret = answer_no_memory(err);
		}
	}
	filter_free(&conditions);
	return ret;
}

int map_filter_make(const struct answer *a, struct map_filter *f, struct mp_err *err)
{
	const char *script = call_text(a->call, "custom_filter");
	int ret;

	*f = (struct map_filter){.call = a->call, .m = a->m};
	if (script && *script)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "custom_filter: memprof runs no scripts; use the other filters");
	ret = match_stacks(f, a->m, err);
	if (ret)
		map_filter_free(f);
	return ret;
}

void map_filter_free(struct map_filter *f)
{
	free(f->stack);
	f->stack = NULL;
}

static bool is_stack(const struct map_filter *f, const char *name, uint32_t stack)
{
	uint64_t wanted = call_number(f->call, name, UINT64_MAX);

	return wanted == UINT64_MAX || (stack && stack == wanted);
}

static bool stacks_pass(const struct map_filter *f, const struct map *map)
{
	uint32_t stack = map->source.known ? map->source.stack : 0;

	if (!is_stack(f, "backtraces", stack) ||
	    !is_stack(f, "deallocation_backtraces", map->ended.known ? map->ended.stack : 0))
		return false;
	if (!stack || stack >= f->m->stacks.n)
		return !f->needs_stack;
	return !f->stack || f->stack[stack];
}

/* ------------------------------------------------------------------ numbers and times -- */

/* @name: without "_min" and "_max".  The bounds are inclusive. */
static bool within(const struct map_filter *f, const char *name, uint64_t v)
{
	char min[32], max[32];

	snprintf(min, sizeof(min), "%s_min", name);
	snprintf(max, sizeof(max), "%s_max", name);
	return v >= call_number(f->call, min, 0) && v <= call_number(f->call, max, UINT64_MAX);
}

static uint64_t moment(const struct map_filter *f, const char *name, bool upper, uint64_t otherwise)
{
	const char *text = call_text(f->call, name);
	struct amount at;

	return text && amount_time(text, &at)
		   ? amount_ns(&at, f->m->info.start_unix_ns, f->m->facts.end_ns, upper, otherwise)
		   : otherwise;
}

static bool is_alive(const struct map_filter *f, const char *name, const struct map *map)
{
	uint64_t at = moment(f, name, false, UINT64_MAX);

	return at == UINT64_MAX || (map->born_ns <= at && map->died_ns > at);
}

static uint64_t duration(const struct map_filter *f, const char *name, uint64_t otherwise)
{
	const char *text = call_text(f->call, name);
	uint64_t ns;

	return text && amount_duration(text, &ns) ? ns : otherwise;
}

static bool times_pass(const struct map_filter *f, const struct map *map)
{
	uint32_t word = call_word(f->call, "lifetime");
	bool lives = map->died_ns == MAP_LIVES;
	uint64_t end = lives ? f->m->facts.end_ns : map->died_ns;
	uint64_t lifetime = end > map->born_ns ? end - map->born_ns : 0;

	return map->born_ns >= moment(f, "from", false, 0) &&
	       map->born_ns <= moment(f, "to", true, UINT64_MAX) &&
	       (!word || (word == 1) == lives) && lifetime >= duration(f, "lifetime_min", 0) &&
	       lifetime <= duration(f, "lifetime_max", UINT64_MAX) &&
	       is_alive(f, "alive_at", map) && is_alive(f, "alive_at_2", map);
}

/* ------------------------------------------------------------------ kinds -- */

static bool chosen(const struct map_filter *f, const char *name, bool is)
{
	uint32_t word = call_word(f->call, name);

	return !word || (word == 1) == is;
}

bool map_filter_has(const struct map_filter *f, const struct map *map)
{
	/* A map that no look had has no known peak: it passes no bound on it. */
	bool has_peak = map->uses.n || (!call_text(f->call, "peak_rss_min") &&
					!call_text(f->call, "peak_rss_max"));

	return within(f, "address", map_address(f->m, map)) &&
	       within(f, "size", map->end - map->start) && has_peak &&
	       within(f, "peak_rss", map->peak_rss) &&
	       chosen(f, "jemalloc", !strncmp(map->name, "[anon:jemalloc", 14)) &&
	       chosen(f, "bytehound", strstr(map->name, SS_NAME)) &&
	       chosen(f, "readable", map->prot & PROT_READ) &&
	       chosen(f, "writable", map->prot & PROT_WRITE) &&
	       chosen(f, "executable", map->prot & PROT_EXEC) && times_pass(f, map) &&
	       stacks_pass(f, map);
}
