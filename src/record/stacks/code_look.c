/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks/code_look.h"

#include <errno.h>
#include <string.h>
#include "lib/deadline.h"
#include "record/aggregator.h"
#include "record/pieces/periodic.h"

bool code_update_tables(struct aggregator *a)
{
	uint64_t start = mono_ns(), end;
	bool changed;

	if (start < a->next_code_ns)
		return false;
	changed = a->config->code_changed(a->config->ctx);
	end = mono_ns();
	a->next_code_ns = end + 9 * (end - start);
	return changed;
}

/* Return: how many changes were taken.  @doubtful: set if the agent does not have the tables of the code yet */
static size_t take_changes(struct aggregator *a, bool *doubtful)
{
	const struct recorder_config *config = a->config;
	struct code_change c;
	size_t n = 0;

	*doubtful = false;
	for (; config->next_change && config->next_change(config->ctx, &c); n++) {
		int ret = code_ranges_add(&a->code, &c, &a->clock);

		*doubtful |= c.doubtful_until_ns == UINT64_MAX;
		if (ret)
			a->now.error = ret;
	}
	return n;
}

void code_look(struct aggregator *a)
{
	bool doubtful, again;
	size_t n = take_changes(a, &doubtful);

	if (!n)
		return;
	if (doubtful && code_update_tables(a))
		take_changes(a, &again);
	put_hooks_and_modules(a);
}

/* The agent's stacks can be others in the recording from now on. */
static int forget_words(struct aggregator *a)
{
	struct live *fresh = live_new(STACKS_LOAD);

	if (!fresh)
		return -ENOMEM;
	live_free(a->stack_of_word);
	a->stack_of_word = fresh;
	memset(a->recent_stack, 0, sizeof(a->recent_stack));
	return 0;
}

void code_reach(struct aggregator *a, uint64_t ticks)
{
	int ret = code_ranges_reach(&a->code, ticks, &a->clock) ? forget_words(a) : 0;

	if (ret)
		a->now.error = ret;
}
