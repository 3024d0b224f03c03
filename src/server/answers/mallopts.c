/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/mallopts.h"

#include "export/json_stack.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"

static void write_one(struct answer *a, yajl_gen g, const struct model_mallopt *o)
{
	const char *name = mallopt_name(o->param);

	yajl_gen_map_open(g);
	json_moment(g, a->m, "timestamp", o->time_ns);
	json_number(g, "thread", o->tid);
	frames_backtrace(a, g, o->stack);
	json_integer(g, "raw_param", o->param);
	if (name)
		json_text(g, "param", name);
	json_integer(g, "value", o->value);
	json_integer(g, "result", o->result);
	yajl_gen_map_close(g);
}

int answer_mallopts(struct answer *a, struct mp_err *err)
{
	yajl_gen g;
	int ret = frames_begin(a, err);

	if (!ret)
		ret = answer_begin(a, &g, err);
	if (ret)
		return ret;
	yajl_gen_array_open(g);
	vec_for_each (&a->m->facts.mallopts, o)
		write_one(a, g, o);
	yajl_gen_array_close(g);
	return answer_end(a, g, 0, err);
}
