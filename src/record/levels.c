/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/levels.h"

#include <errno.h>

/* Sections become longer, so that their number grows with the logarithm of the time. */
#define SHORTEST_NS 2000000u
#define SECTIONS    512u /* in the time until now, if all were as long as the next one */

void levels_free(struct levels *l)
{
	vec_free(&l->stacks);
}

struct stack_level levels_of(const struct levels *l, uint32_t id)
{
	return id < l->stacks.n ? l->stacks.at[id] : (struct stack_level){0};
}

struct stack_level *levels_stack(struct levels *l, uint32_t id)
{
	if (vec_reach(&l->stacks, id))
		return NULL;
	return &l->stacks.at[id];
}

static void next_section(struct levels *l, uint64_t begin_ns)
{
	uint64_t length = (begin_ns - l->file_ns) / SECTIONS;
	struct mp_section *s = &l->section;

	l->begin_ns = begin_ns;
	*s = (struct mp_section){.end_ns = begin_ns + (length > SHORTEST_NS ? length : SHORTEST_NS),
				 .live_bytes = s->live_bytes,
				 .live_blocks = s->live_blocks,
				 .peak_bytes = s->live_bytes,
				 .peak_blocks = s->live_blocks};
}

/* Keeps what a stack had live at the latest peak, before that changes for the first time after it. */
static void note_peak(const struct levels *l, struct stack_level *s)
{
	if (s->epoch == l->epoch)
		return;
	s->peak_bytes = s->live_bytes;
	s->peak_blocks = s->live_blocks;
	s->epoch = l->epoch;
}

static void set_peak(struct levels *l, uint64_t time_ns)
{
	l->peak.bytes = l->section.live_bytes;
	l->peak.blocks = l->section.live_blocks;
	l->peak.time_ns = time_ns;
	l->epoch++;
}

void levels_begin(struct levels *l, uint64_t begin_ns)
{
	l->file_ns = begin_ns;
	next_section(l, begin_ns);
	set_peak(l, begin_ns);
	vec_for_each (&l->stacks, s) {
		note_peak(l, s);
		s->most_bytes = s->live_bytes;
		s->most_ns = begin_ns;
		s->changed = false;
	}
}

int levels_time(struct levels *l, uint64_t now_ns, struct mpf_writer *file)
{
	uint64_t length = l->section.end_ns - l->begin_ns;
	int ret = 0;

	if (now_ns < l->section.end_ns)
		return 0;
	ret = mpf_put_section(file, &l->section);
	next_section(l, l->section.end_ns);
	/* Nothing happened meanwhile. */
	if (!ret && now_ns - l->begin_ns >= length) {
		l->section.end_ns = now_ns;
		ret = mpf_put_section(file, &l->section);
		next_section(l, now_ns);
	}
	return ret;
}

static void change_section(struct mp_section *s, const struct level_change *c)
{
	if (c->ends) {
		s->live_bytes -= c->bytes;
		s->live_blocks -= c->blocks;
		s->frees += c->blocks;
		s->freed_bytes += c->bytes;
		return;
	}
	s->live_bytes += c->bytes;
	s->live_blocks += c->blocks;
	if (s->live_bytes > s->peak_bytes)
		s->peak_bytes = s->live_bytes;
	if (s->live_blocks > s->peak_blocks)
		s->peak_blocks = s->live_blocks;
	if (!c->carried) {
		s->allocations += c->blocks;
		s->allocated_bytes += c->bytes;
	}
}

int levels_change(struct levels *l, const struct level_change *c)
{
	struct stack_level *s =
	    c->stack < l->stacks.n ? &l->stacks.at[c->stack] : levels_stack(l, c->stack);

	if (!s)
		return -ENOMEM;
	note_peak(l, s);
	change_section(&l->section, c);
	s->live_bytes += c->ends ? -c->bytes : c->bytes;
	s->live_blocks += c->ends ? -c->blocks : c->blocks;
	if (c->ends)
		return 0;
	s->changed = true;
	if (s->live_bytes > s->most_bytes) {
		s->most_bytes = s->live_bytes;
		s->most_ns = c->time_ns;
	}
	if (l->section.live_bytes > l->peak.bytes)
		set_peak(l, c->time_ns);
	return 0;
}

/* levels_change() for @c and its end. */
static int change_twice(struct levels *l, const struct level_change *c)
{
	struct level_change end = *c;
	int ret = levels_change(l, c);

	end.ends = true;
	return ret ? ret : levels_change(l, &end);
}

int levels_pair(struct levels *l, const struct level_change *c)
{
	struct mp_section *s = &l->section;
	struct stack_level *of;

	if (c->stack >= l->stacks.n || s->live_bytes + c->bytes > s->peak_bytes ||
	    s->live_blocks + c->blocks > s->peak_blocks ||
	    l->stacks.at[c->stack].live_bytes + c->bytes > l->stacks.at[c->stack].most_bytes)
		return change_twice(l, c);
	of = &l->stacks.at[c->stack];
	of->changed = true;
	s->allocations += c->blocks;
	s->allocated_bytes += c->bytes;
	s->frees += c->blocks;
	s->freed_bytes += c->bytes;
	return 0;
}

int levels_end(struct levels *l, uint64_t end_ns, const uint32_t *ids, struct mpf_writer *file)
{
	int ret = levels_time(l, end_ns, file);

	if (l->section.end_ns > end_ns)
		l->section.end_ns = end_ns > l->begin_ns ? end_ns : l->begin_ns;
	if (!ret)
		ret = mpf_put_section(file, &l->section);
	for (uint32_t id = 0; id < l->stacks.n && !ret; id++) {
		struct stack_level *s = &l->stacks.at[id];

		note_peak(l, s);
		/* Of the others the file only has blocks that were live before it began, if any. */
		if (s->changed || s->peak_bytes)
			ret = mpf_put_stack_peak(
			    file,
			    &(struct mp_stack_peak){ids ? ids[id] : id, s->most_bytes, s->most_ns,
						    s->peak_bytes, s->peak_blocks});
	}
	return ret;
}
