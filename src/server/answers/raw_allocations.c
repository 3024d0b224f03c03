/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/raw_allocations.h"

#include <errno.h>
#include "formats/session.h"
#include "model/model.h"
#include "server/answers/ending.h"

struct writer {
	struct answer *a;
	yajl_gen g;
};

static int on_allocated(void *ctx, const struct model_block *b)
{
	const struct writer *w = ctx;
	const struct model *m = w->a->m;
	const struct model_stack *s = &m->stacks.at[b->stack < m->stacks.n ? b->stack : 0];

	yajl_gen_map_open(w->g);
	json_name(w->g, "backtrace");
	yajl_gen_array_open(w->g);
	for (uint32_t i = s->n; i-- > 0;)
		json_hex(w->g, ss_pc_instruction(m->stacks.pc.at[s->first + i]));
	yajl_gen_array_close(w->g);
	yajl_gen_map_close(w->g);
	return ferror(w->a->out) ? -EIO : 0;
}

int answer_raw_allocations(struct answer *a, struct mp_err *err)
{
	struct writer w = {.a = a};
	struct history_sink sink = {.allocated = on_allocated, .faulted = on_allocated, .ctx = &w};
	int ret = answer_begin(a, &w.g, err);

	if (ret)
		return ret;
	yajl_gen_array_open(w.g);
	ret = model_replay(a->m, &sink, NULL, err);
	yajl_gen_array_close(w.g);
	return answer_end(a, w.g, ret, err);
}
