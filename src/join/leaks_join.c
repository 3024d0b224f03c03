/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "join/leaks_join.h"

#include <errno.h>
#include <stdlib.h>

static struct match *leaked_blocks(const struct analysis *a, size_t *n)
{
	struct match *list = calloc(a->leaks.total_count + 1ull, sizeof(*list));

	*n = 0;
	for (uint32_t b = 0; list && b < a->graph.n; b++) {
		if (a->leaks.owner[b]) {
			list[*n].addr = a->graph.block[b].addr;
			list[(*n)++].usable = a->graph.block[b].size;
		}
	}
	return list;
}

static const struct match *origin_of(const struct match *list, size_t n, uint64_t addr)
{
	size_t low = 0, high = n;

	while (low + 1 < high) {
		size_t mid = low + (high - low) / 2;

		if (list[mid].addr <= addr)
			low = mid;
		else
			high = mid;
	}
	return &list[low];
}

/* Removes leaks that were freed after the snapshot: they were still referenced, and so was all that
 * only they held. */
static int drop_freed(struct leak_join *j, struct analysis *a, const struct match *list, size_t n)
{
	uint32_t *keep = calloc(a->leaks.direct.n + 1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	j->freed = (struct join_sum){a->leaks.total_count, a->leaks.total_bytes};
	for (size_t i = 0; i < a->leaks.direct.n; i++)
		keep[i] =
		    origin_of(list, n, a->graph.block[a->leaks.direct.at[i].block].addr)->state !=
		    MATCH_FREED;
	leaks_keep(&a->leaks, &a->graph, keep);
	j->freed.count -= a->leaks.total_count;
	j->freed.bytes -= a->leaks.total_bytes;
	free(keep);
	return 0;
}

/* Sums up the blocks that are still leaks, and removes the others from @list. */
static size_t sum_up(struct leak_join *j, const struct analysis *a, struct match *list)
{
	uint64_t lost = mp_losses_frees(&j->r.m.facts.losses), old = 0;
	size_t n = 0, i = 0;

	for (uint32_t b = 0; b < a->graph.n; b++) {
		struct join_sum *sum;

		if (!a->leaks.owner[b])
			continue;
		while (list[i].addr != a->graph.block[b].addr)
			i++;
		list[n] = list[i++];
		sum = list[n].state == MATCH_KNOWN ? &j->known : &j->unknown;
		sum->count++;
		sum->bytes += list[n].usable;
		old += list[n].state == MATCH_KNOWN &&
		       list[n].time_ns <= j->r.m.facts.losses.last_loss_ns;
		n++;
	}
	j->uncertain = old < lost ? old : lost;
	return n;
}

static struct leak_source source_of(const struct match *o, uint64_t at_ns)
{
	if (o->state != MATCH_KNOWN)
		return (struct leak_source){0};
	return (struct leak_source){.known = true,
				    .older = o->older,
				    .stack = o->stack,
				    .tid = o->tid,
				    .age_ns = at_ns - o->time_ns};
}

static int split(struct analysis *a, const struct match *list, size_t n, uint64_t at_ns)
{
	struct leak_source *source = calloc(a->leaks.direct.n + 1, sizeof(*source));
	int ret = source ? 0 : -ENOMEM;

	for (size_t i = 0; i < a->leaks.direct.n && !ret; i++)
		source[i] = source_of(
		    origin_of(list, n, a->graph.block[a->leaks.direct.at[i].block].addr), at_ns);
	if (!ret)
		ret = clusters_split(&a->clusters, &a->graph, &a->leaks, source);
	free(source);
	return ret;
}

/* Finds the allocation of --why's block, which can be live at the snapshot without being leaked,
 * and freed since. */
static int explain(const struct leak_join *j, struct why *w, uint64_t at_ns, struct mp_err *err)
{
	struct match o = {.addr = w->block.addr, .usable = w->block.size};
	int ret = match_find(&j->r.m, &o, 1, at_ns, err);

	if (o.state == MATCH_FREED)
		o.state = MATCH_KNOWN;
	if (!ret)
		w->source = source_of(&o, at_ns);
	return ret;
}

int join_make(struct leak_join *j, struct analysis *a, struct mp_err *err)
{
	uint64_t at_ns;
	struct match *list;
	size_t n;
	int ret;

	if (!j->r.path[0])
		return 0;
	ret = recording_of_read(&j->r, a->taken_ns, err);
	if (ret)
		return ret;
	at_ns = j->r.at_ns;
	list = leaked_blocks(a, &n);
	if (!list)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	ret = match_find(&j->r.m, list, n, at_ns, err);
	if (!ret && n) {
		ret = drop_freed(j, a, list, n);
		if (!ret) {
			n = sum_up(j, a, list);
			ret = split(a, list, n, at_ns);
		}
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	if (!ret && a->why.block.size)
		ret = explain(j, &a->why, at_ns, err);
	if (!ret)
		match_weigh(&j->r.m, list, n);
	free(list);
	return ret;
}

bool join_any_name(void *join, uint32_t stack, bool (*matches)(const char *, const char *),
		   const char *pattern)
{
	struct leak_join *j = join;
	const struct model_stack *s = &j->r.m.stacks.at[stack < j->r.m.stacks.n ? stack : 0];

	for (uint32_t i = 0; i < s->n; i++) {
		struct frame f[MAX_INLINED];
		uint32_t n =
		    model_frames(&j->r.m, j->r.m.stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0) {
			if (matches(pattern, f[n].function) ||
			    (f[n].source && matches(pattern, f[n].source)) ||
			    (f[n].library && matches(pattern, f[n].library)))
				return true;
		}
	}
	return false;
}

void join_free(struct leak_join *j)
{
	recording_of_free(&j->r);
}
