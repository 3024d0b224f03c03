/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/exports.h"

#include <errno.h>
#include "export/format.h"
#include "export/output.h"
#include "model/model.h"
#include "server/answers/ending.h"

/* allocated is also what a report has by default; it is first so that it is the default here, too. */
const char *const cost_words[] = {"allocated", "live",	  "count",  "peak",  "temporary",
				  "mapped",    "faulted", "faults", "major", NULL};

const struct parameter cost_parameters[] = {{"cost", PARAMETER_WORD, 0, cost_words}, {0}};
const struct parameter text_parameters[] = {{"verbose", PARAMETER_BOOL, 0, NULL}, {0}};

int answer_cost(const struct answer *a, int *cost, struct mp_err *err)
{
	bool faults = a->m->info.what == MP_PAGE_FAULTS;
	const char *text = call_text(a->call, "cost");
	enum cost c;

	*cost = -1;
	if (!text || !cost_parse(text, &c))
		return 0;
	*cost = (int)c;
	if (cost_is_of_faults(c) == faults)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
		       faults ? "cost: for a recording of page faults use faulted, faults or major"
			      : "cost: faulted, faults and major need a recording of page faults");
}

static int suits(const struct answer *a, enum format format, struct mp_err *err)
{
	if (a->m->info.what != MP_PAGE_FAULTS || format_facts(format)->of_faults)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
		       "this format is for allocations, and this is a recording of page faults; "
		       "export/json, collapsed, flamegraph, icicle and text are for both");
}

static int write_format(struct answer *a, struct format_request *r, struct mp_err *err)
{
	int ret = suits(a, r->format, err);

	r->top = TOP_USUAL;
	return ret ? ret : format_write(a->m, r, a->out, err);
}

static int write_plain(struct answer *a, enum format format, struct mp_err *err)
{
	struct format_request r = {.format = format, .cost = -1};

	return write_format(a, &r, err);
}

static int write_cost(struct answer *a, enum format format, struct mp_err *err)
{
	struct format_request r = {.format = format};
	int ret = answer_cost(a, &r.cost, err);

	return ret ? ret : write_format(a, &r, err);
}

int answer_flamegraph(struct answer *a, struct mp_err *err)
{
	return write_cost(a, FORMAT_FLAMEGRAPH, err);
}

int answer_icicle(struct answer *a, struct mp_err *err)
{
	return write_cost(a, FORMAT_ICICLE, err);
}

int answer_collapsed(struct answer *a, struct mp_err *err)
{
	return write_cost(a, FORMAT_COLLAPSED, err);
}

int answer_heaptrack(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_HEAPTRACK, err);
}

int answer_replay(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_REPLAY, err);
}

int answer_pprof(struct answer *a, struct mp_err *err)
{
	struct format_request r = {.format = FORMAT_PPROF, .cost = -1};
	FILE *out;
	/* Closing the stream would begin the answer. */
	int ret = suits(a, r.format, err), closed;

	if (ret)
		return ret;
	out = output_gzip(a->out);
	if (!out)
		return answer_no_memory(err);
	ret = format_write(a->m, &r, out, err);
	closed = output_close(out);
	return ret ? ret : answer_wrote(closed, err);
}

int answer_speedscope(struct answer *a, struct mp_err *err)
{
	return write_cost(a, FORMAT_SPEEDSCOPE, err);
}

int answer_csv(struct answer *a, struct mp_err *err)
{
	return write_cost(a, FORMAT_CSV, err);
}

int answer_plot(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_PLOT, err);
}

int answer_html(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_HTML, err);
}

int answer_json(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_JSON, err);
}

int answer_text(struct answer *a, struct mp_err *err)
{
	struct format_request r = {
	    .format = FORMAT_TEXT, .cost = -1, .verbose = call_true(a->call, "verbose")};

	return write_format(a, &r, err);
}

int answer_ascii_tree(struct answer *a, struct mp_err *err)
{
	return write_plain(a, FORMAT_ASCII_TREE, err);
}
