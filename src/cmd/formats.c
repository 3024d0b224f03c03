/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/ascii_tree.h"
#include "export/csv.h"
#include "export/faults.h"
#include "export/flame.h"
#include "export/heaptrack.h"
#include "export/json.h"
#include "export/plot.h"
#include "export/pprof.h"
#include "export/replay.h"
#include "export/speedscope.h"
#include "export/text_summary.h"
#include "export/tree.h"
#include "model/model.h"

bool format_is_gzip(enum format f)
{
	return f == FORMAT_PPROF;
}

static enum cost cost_of(const struct format_request *r, bool page_faults)
{
	if (r->cost >= 0)
		return (enum cost)r->cost;
	if (page_faults)
		return COST_FAULTED;
	return r->leaks ? COST_LEAKED : COST_ALLOCATED;
}

static bool shows_faults(enum format f)
{
	return f == FORMAT_TEXT || f == FORMAT_JSON || f == FORMAT_TREE || f == FORMAT_COLLAPSED ||
	       f == FORMAT_FLAMEGRAPH || f == FORMAT_ICICLE;
}

int format_suits(const struct format_request *r, const struct mp_info *info, struct mp_err *err)
{
	bool faults = info->what == MP_PAGE_FAULTS;

	if (r->cost >= 0 && cost_is_of_faults((enum cost)r->cost) != faults)
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    faults ? "--cost: for a recording of page faults use faulted, faults or major"
			   : "--cost: faulted, faults and major need a recording of page faults");
	if (faults && r->leaks)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--leaks: a recording of page faults contains no blocks");
	if (faults && !shows_faults(r->format))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "this format is for allocations; for a recording of page faults use "
			       "the summary, --json, --tree, --collapsed, --flamegraph, --icicle "
			       "or --view faults");
	return 0;
}

bool format_wants_blocks(const struct format_request *r)
{
	return (r->format == FORMAT_JSON && r->leaks) ||
	       (r->format == FORMAT_ASCII_TREE && cost_of(r, false) == COST_LEAKED);
}

bool format_says_estimated(const struct format_request *r)
{
	return r->format == FORMAT_TEXT || r->format == FORMAT_JSON;
}

static int write_tree(struct model *m, const struct format_request *r, enum cost cost, FILE *out)
{
	struct tree_node *tree = r->bottom_up ? tree_build_bottom_up(m, cost) : tree_build(m, cost);
	int ret = 0;

	if (!tree)
		return -ENOMEM;
	if (r->format == FORMAT_TREE)
		tree_write(tree, cost, r->least / 100, out);
	else
		ret = flame_of_model(m, tree, cost, r->format == FORMAT_ICICLE, out);
	tree_free(tree);
	return ret;
}

int format_write(struct model *m, const struct format_request *r, FILE *out, struct mp_err *err)
{
	bool faults = m->info.what == MP_PAGE_FAULTS;
	enum cost cost = cost_of(r, faults);
	struct text_options text = {r->top, r->leaks,
				    out == stdout && isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
	int ret = 0;

	switch (r->format) {
	case FORMAT_JSON:
		ret = faults ? faults_json(m, out) : json_write(m, r->leaks, out);
		break;
	case FORMAT_COLLAPSED:
		ret = folded_write(m, cost, out);
		break;
	case FORMAT_TREE:
	case FORMAT_FLAMEGRAPH:
	case FORMAT_ICICLE:
		ret = write_tree(m, r, cost, out);
		break;
	case FORMAT_SPEEDSCOPE:
		ret = speedscope_write(m, cost, out);
		break;
	case FORMAT_CSV:
		ret = csv_write(m, cost, out);
		break;
	case FORMAT_ASCII_TREE:
		ret = ascii_tree_write(m, cost, out);
		break;
	case FORMAT_PLOT:
		ret = plot_write(m, out);
		break;
	case FORMAT_PPROF:
		ret = pprof_write(m, out);
		break;
	case FORMAT_REPLAY:
		return replay_write(m, out, err);
	case FORMAT_HEAPTRACK:
		return heaptrack_write(m, out, err);
	default:
		if (faults)
			faults_text(m, &text, out);
		else
			text_summary(m, &text, out);
	}
	if (ret)
		mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
	return ret;
}
