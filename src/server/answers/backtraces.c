/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/backtraces.h"

#include <errno.h>
#include <stdlib.h>
#include "model/filter/stack_conditions.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"
#include "server/answers/stack_filter.h"

int answer_backtrace(struct answer *a, struct mp_err *err)
{
	yajl_gen g;
	int ret = 0;

	if (!answer_has_stack(a, a->call->number))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOENT, "no backtrace %llu",
			       (unsigned long long)a->call->number);
	ret = frames_begin(a, err);
	if (!ret)
		ret = answer_begin(a, &g, err);
	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_name(g, "frames");
	frames_array(a, g, (uint32_t)a->call->number);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

/* Return: 0 with @keep[id] set for every stack that is to be written, or a negative errno with @err. */
static int choose(struct answer *a, uint8_t *keep, struct mp_err *err)
{
	struct filter f;
	bool wants;
	int ret = stack_filter_make(a->call, &f, &wants, err);

	if (ret)
		return ret;
	for (uint32_t id = 0; id < a->m->stacks.n; id++)
		keep[id] = a->m->stacks.at[id].n > 0;
	ret = stacks_match(&f, a->m, keep, err);
	filter_free(&f);
	return ret;
}

static void write_stacks(struct answer *a, yajl_gen g, const uint8_t *keep)
{
	uint64_t total = 0;

	yajl_gen_map_open(g);
	json_name(g, "backtraces");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < a->m->stacks.n && !ferror(a->out); id++) {
		if (keep[id])
			frames_array(a, g, id);
		total += keep[id];
	}
	yajl_gen_array_close(g);
	json_number(g, "total_count", total);
	json_name(g, "backtrace_ids");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < a->m->stacks.n; id++) {
		if (keep[id])
			yajl_gen_integer(g, id);
	}
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

static int write_answer(struct answer *a, uint8_t *keep, struct mp_err *err)
{
	yajl_gen g;
	int ret = choose(a, keep, err);

	if (!ret)
		ret = frames_begin(a, err);
	if (!ret)
		ret = answer_begin(a, &g, err);
	if (ret)
		return ret;
	write_stacks(a, g, keep);
	return answer_end(a, g, 0, err);
}

int answer_backtraces(struct answer *a, struct mp_err *err)
{
	uint8_t *keep = calloc(a->m->stacks.n, 1);
	int ret = keep ? write_answer(a, keep, err) : answer_no_memory(err);

	free(keep);
	return ret;
}
