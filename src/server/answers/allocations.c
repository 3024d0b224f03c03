/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/allocations.h"

#include "export/lists/allocation_seek.h"
#include "export/lists/allocations.h"
#include "export/lists/collect.h"
#include "export/json_stack.h"
#include "model/names/allocator.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"

/* Entries that are collected in one reading of the recording.  A longer list takes several. */
#define PAGE 200000u

/* The part of the list that is still to be written. */
struct rest {
	uint64_t skip, count;
	struct allocation last; /* of the page before */
	bool has_last;
	uint64_t total;
};

/* @stack: 0: not recorded. */
static void write_deallocation(struct answer *a, yajl_gen g, const char *key,
			       const struct allocation *end)
{
	json_name(g, key);
	yajl_gen_map_open(g);
	json_moment(g, a->m, "timestamp", end->end_ns);
	json_number(g, "thread", end->end_tid);
	if (end->end_stack)
		frames_backtrace(a, g, end->end_stack);
	yajl_gen_map_close(g);
}

static void write_chain(struct answer *a, yajl_gen g, const struct allocation *at,
			const struct chain_end *c)
{
	json_number(g, "position_in_chain", at->position);
	json_number(g, "chain_length", c ? c->length : 1);
	if (c ? !c->ended : !at->ended)
		return;
	if (c && at->position + 1 < c->length)
		write_deallocation(
		    a, g, "chain_deallocation",
		    &(struct allocation){.end_ns = c->end_ns, .end_tid = c->end_tid});
	json_timeval(g, "chain_lifetime",
		     c ? c->end_ns - c->first_ns : at->end_ns - at->block.time_ns);
}

static void write_one(struct answer *a, yajl_gen g, const struct allocation *at,
		      const struct chain_end *c)
{
	enum allocator kind = model_allocator(a->m, &at->block);

	yajl_gen_map_open(g);
	json_number(g, "id", at->block.ordinal);
	json_address(g, at->block.addr);
	json_moment(g, a->m, "timestamp", at->block.time_ns);
	json_number(g, "thread", at->block.tid);
	json_number(g, "size", at->block.size);
	frames_backtrace(a, g, at->block.stack);
	if (at->ended)
		write_deallocation(a, g, "deallocation", at);
	allocation_kind_json(g, kind);
	json_number(g, "extra_space", at->block.usable - at->block.size);
	write_chain(a, g, at, c);
	if (model_is_estimated(a->m))
		json_number(g, "represents", model_estimate(a->m, &at->block).blocks);
	yajl_gen_map_close(g);
}

/* Return: 1 if the list has more; 0 if it was the last page; or a negative errno with @err. */
static int write_page(struct answer *a, yajl_gen g, const struct view *order, struct rest *rest,
		      struct mp_err *err)
{
	struct view page = *order;
	struct allocations list;
	int ret;

	page.skip = 0;
	page.count =
	    rest->skip < PAGE && rest->count < PAGE - rest->skip ? rest->skip + rest->count : PAGE;
	ret = allocations_collect(a->m, &page, rest->has_last ? &rest->last : NULL, &list, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < list.at.n && !ferror(a->out); i++) {
		if (rest->skip) {
			rest->skip--;
		} else if (rest->count) {
			write_one(a, g, &list.at.at[i], allocations_chain(&list, &list.at.at[i]));
			rest->count--;
		}
	}
	rest->total = list.total;
	rest->has_last = list.at.n == page.count && page.count;
	if (rest->has_last)
		rest->last = list.at.at[list.at.n - 1];
	allocations_free(&list);
	return rest->has_last && rest->count && !ferror(a->out);
}

/* Moves to a position shortly before a part that is far down the list, without collecting what precedes it. */
static int skip(const struct answer *a, const struct view *order, struct rest *rest,
		struct mp_err *err)
{
	struct allocation_place place;
	int ret;

	if (rest->skip < PAGE)
		return 0;
	ret = allocations_seek(a->m, order, PAGE / 2, &place, err);
	if (ret)
		return ret;
	rest->skip -= place.before;
	rest->last = place.after;
	rest->has_last = !place.at_start;
	return 0;
}

int answer_allocations(struct answer *a, struct mp_err *err)
{
	struct view order = {0};
	struct rest rest = {0};
	yajl_gen g;
	int ret = frames_begin(a, err);

	if (!ret)
		ret = answer_begin(a, &g, err);
	if (ret)
		return ret;
	call_view(a->call, &order);
	rest.skip = order.skip;
	rest.count = order.count;
	ret = skip(a, &order, &rest, err);
	if (ret)
		return answer_end(a, g, ret, err);
	yajl_gen_map_open(g);
	json_name(g, "allocations");
	yajl_gen_array_open(g);
	do {
		ret = write_page(a, g, &order, &rest, err);
	} while (ret > 0);
	yajl_gen_array_close(g);
	json_number(g, "total_count", rest.total);
	answer_estimated(a, g);
	answer_culled(a, g);
	yajl_gen_map_close(g);
	return answer_end(a, g, ret, err);
}
