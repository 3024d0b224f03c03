/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/compare.h"

#include <errno.h>
#include "export/diff.h"
#include "model/filter/amount.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/recordings.h"

static const char *const costs[] = {"live", "allocated", "count", "peak", "temporary", NULL};
static const enum cost cost_of[] = {COST_LEAKED, COST_ALLOCATED, COST_COUNT, COST_PEAK,
				    COST_TEMPORARY};

/* This recording, at its moment "at", is compared with "with" at "with_at". */
const struct parameter diff_parameters[] = {{"with", PARAMETER_TEXT, 0, NULL},
					    {"cost", PARAMETER_WORD, 0, costs},
					    {"at", PARAMETER_TIME, 0, NULL},
					    {"with_at", PARAMETER_TIME, 0, NULL},
					    {0}};

static int set_moment(const struct answer *a, const char *name, struct diff_side *side,
		      struct mp_err *err)
{
	const char *text = call_text(a->call, name);
	const struct model *m = side->m;
	struct amount at;

	if (!text || !amount_time(text, &at))
		return 0;
	side->has_moment = true;
	side->at_ns = amount_ns(&at, m->info.start_unix_ns, m->facts.end_ns, false, 0);
	if (side->at_ns <= m->facts.end_ns)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -ERANGE, "%s: %.3f s, but the recording ends at %.3f s",
		       name, (double)side->at_ns / 1e9, (double)m->facts.end_ns / 1e9);
}

static int suits(const struct model *m, struct mp_err *err)
{
	return m->info.what == MP_PAGE_FAULTS
		   ? mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			     "diff compares allocations, and this is a recording of page faults")
		   : 0;
}

/* Compares the two sides.  Return: 0 or a negative errno with @err. */
static int write_comparison(struct answer *a, struct model *with,
			    int (*write)(const struct diff *d, FILE *), struct mp_err *err)
{
	struct diff_side before = {.m = a->m}, after = {.m = with};
	enum cost cost = cost_of[call_word(a->call, "cost")];
	struct diff d;
	int ret = set_moment(a, "at", &before, err);

	if (!ret)
		ret = set_moment(a, "with_at", &after, err);
	if (!ret)
		ret = diff_make(&before, &after, cost, &d, err);
	if (ret)
		return ret;
	ret = write(&d, a->out);
	diff_free(&d);
	return answer_wrote(ret, err);
}

static int answer(struct answer *a, int (*write)(const struct diff *d, FILE *), struct mp_err *err)
{
	const char *id = call_text(a->call, "with");
	struct model_options o = {.filter = &a->call->filter};
	struct model with;
	uint32_t index;
	int ret = suits(a->m, err);

	if (ret)
		return ret;
	if (!id && !call_text(a->call, "at") && !call_text(a->call, "with_at"))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "diff: with=ID names the other recording, at=TIME and with_at=TIME "
			       "two moments");
	if (!id)
		return write_comparison(a, a->m, write, err);
	if (!recordings_find(a->recordings, id, &index))
		return mp_fail(err, MP_EXIT_USAGE, -ENOENT, "with: data not found");
	if (index == a->call->recording)
		return write_comparison(a, a->m, write, err);
	if (a->call->in_map)
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "from_map: the id is of a map of one recording, and this compares two");
	ret = model_load(a->recordings->at.at[index].path, &o, &with, err);
	if (ret)
		return ret;
	ret = suits(&with, err);
	if (!ret)
		ret = write_comparison(a, &with, write, err);
	model_free(&with);
	return ret;
}

int answer_diff(struct answer *a, struct mp_err *err)
{
	return answer(a, diff_json, err);
}

int answer_diff_flame(struct answer *a, struct mp_err *err)
{
	return answer(a, diff_flame, err);
}
