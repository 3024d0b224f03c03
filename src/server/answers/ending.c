/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/ending.h"

#include <errno.h>
#include <string.h>
#include "export/lists/groups.h"
#include "model/model.h"
#include "model/sums/weight.h"

int answer_no_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

int answer_wrote(int ret, struct mp_err *err)
{
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the answer: %s",
			     strerror(-ret))
		   : 0;
}

int answer_begin(struct answer *a, yajl_gen *g, struct mp_err *err)
{
	*g = json_begin(a->out, false);
	return *g ? 0 : answer_no_memory(err);
}

int answer_end(struct answer *a, yajl_gen g, int ret, struct mp_err *err)
{
	yajl_gen_free(g);
	if (!ret && ferror(a->out))
		return mp_fail(err, MP_EXIT_OUTPUT, -EIO, "the client did not read the answer");
	return ret;
}

void answer_estimated(const struct answer *a, yajl_gen g)
{
	if (model_is_estimated(a->m))
		json_boolean(g, "estimated", true);
}

void answer_culled(const struct answer *a, yajl_gen g)
{
	if (a->m->sums.culled_blocks)
		json_number(g, "culled_count", a->m->sums.culled_blocks);
}

bool answer_has_stack(const struct answer *a, uint64_t id)
{
	return id < a->m->stacks.n &&
	       (a->m->stacks.at[id].n || groups_all(a->m, (uint32_t)id)->allocations);
}
