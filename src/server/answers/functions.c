/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/functions.h"

#include <errno.h>
#include "export/text/annotate.h"
#include "export/text/peek.h"
#include "model/model.h"
#include "server/answers/exports.h"

#define TOP	 5
#define MOST_TOP 100000u

const struct parameter peek_parameters[] = {{"function", PARAMETER_REGEX, 0, NULL},
					    {"cost", PARAMETER_WORD, 0, cost_words},
					    {"top", PARAMETER_NUMBER, MOST_TOP, NULL},
					    {0}};
const struct parameter annotate_parameters[] = {
    {"file", PARAMETER_TEXT, 0, NULL}, {"cost", PARAMETER_WORD, 0, cost_words}, {0}};

/* In place of a message that names an option of the command line. */
static int not_found(struct mp_err *err, int ret, const char *parameter)
{
	return mp_fail(err, MP_EXIT_USAGE, ret, "%s: no stack that passes the filters has it",
		       parameter);
}

int answer_peek(struct answer *a, struct mp_err *err)
{
	const char *function = call_text(a->call, "function");
	bool faults = a->m->info.what == MP_PAGE_FAULTS;
	int cost, ret = answer_cost(a, &cost, err);

	if (ret)
		return ret;
	if (!function || !*function)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "peek: function=REGEX says which functions");
	if (cost < 0)
		cost = faults ? COST_FAULTED : COST_ALLOCATED;
	ret = peek_write(a->m, function, (enum cost)cost,
			 (uint32_t)call_number(a->call, "top", TOP), a->out, err);
	return ret == -ENOENT ? not_found(err, ret, "function") : ret;
}

int answer_annotate(struct answer *a, struct mp_err *err)
{
	const struct source_prefixes recorded = {.recorded_only = true};
	const char *file = call_text(a->call, "file");
	int cost, ret = answer_cost(a, &cost, err);

	if (ret)
		return ret;
	if (!file || !*file)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "annotate: file=PATH says which source file");
	if (a->m->info.what == MP_PAGE_FAULTS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "annotate: this is a recording of page faults");
	if (cost < 0)
		cost = COST_ALLOCATED;
	if (!cost_is_bytes((enum cost)cost))
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "annotate: cost must be one in bytes: live, allocated, peak or mapped");
	ret = annotate_write(a->m, file, &recorded, (enum cost)cost, a->out, err);
	return ret == -ENOENT ? not_found(err, ret, "file") : ret;
}
