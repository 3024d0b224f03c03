/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/growth.h"

#include <errno.h>
#include "export/lists/growth_list.h"
#include "model/model.h"
#include "server/answers/ending.h"

static const char *const group_words[] = {"line", "function", "library", "class", "stack", NULL};
/* Index: enum growth; the first means any. */
static const char *const shape_words[] = {"all", "growing", "plateau", "burst", "sawtooth", NULL};

const struct parameter growth_parameters[] = {{"group_by", PARAMETER_WORD, 0, group_words},
					      {"shape", PARAMETER_WORD, 0, shape_words},
					      {"skip", PARAMETER_NUMBER, 0, NULL},
					      {"count", PARAMETER_NUMBER, UINT32_MAX, NULL},
					      {0}};

int answer_growth(struct answer *a, struct mp_err *err)
{
	struct growth_list_options o = {
	    .by = (enum group_by)call_word(a->call, "group_by"),
	    .only = (enum growth)call_word(a->call, "shape"),
	    .view = {.skip = call_number(a->call, "skip", 0),
		     .count = call_number(a->call, "count", VIEW_ALL)},
	};

	if (a->m->info.what == MP_PAGE_FAULTS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "growth: a recording of page faults contains no blocks");
	return answer_wrote(growth_list_write(a->m, &o, a->out), err);
}
