/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/format.h"

#include <errno.h>
#include <string.h>
#include "export/text/annotate.h"
#include "export/text/ascii_tree.h"
#include "export/csv.h"
#include "export/faults.h"
#include "export/flame.h"
#include "export/heaptrack.h"
#include "export/html.h"
#include "export/json.h"
#include "export/text/peek.h"
#include "export/plot.h"
#include "export/pprof.h"
#include "export/replay.h"
#include "export/speedscope.h"
#include "export/text/text_summary.h"
#include "export/tree.h"
#include "model/model.h"

/* The default number of sites or functions in a list */
#define TOP_BRIEF   3
#define TOP_VERBOSE 5

const struct format_facts *format_facts(enum format f)
{
	static const struct format_facts facts[NFORMATS] = {
	    [FORMAT_TEXT] = {.of_faults = true,
			     .of_live = true,
			     .says_estimated = true,
			     .says_truncated = true},
	    [FORMAT_JSON] = {.of_faults = true, .of_live = true, .says_estimated = true},
	    [FORMAT_TREE] = {.of_faults = true, .of_live = true},
	    [FORMAT_COLLAPSED] = {.of_faults = true, .of_live = true},
	    [FORMAT_FLAMEGRAPH] = {.of_faults = true, .of_live = true},
	    [FORMAT_ICICLE] = {.of_faults = true, .of_live = true},
	    [FORMAT_ASCII_TREE] = {.of_live = true},
	    [FORMAT_ANNOTATE] = {.of_live = true},
	    [FORMAT_SPEEDSCOPE] = {.of_live = true},
	    [FORMAT_HEAPTRACK] = {.history = true},
	    [FORMAT_PPROF] = {.gzip = true},
	    [FORMAT_REPLAY] = {.history = true},
	    [FORMAT_PEEK] = {.of_faults = true, .of_live = true},
	    [FORMAT_HTML] = {.says_estimated = true, .says_truncated = true},
	};

	return &facts[f];
}

static enum cost cost_of(const struct format_request *r, bool page_faults)
{
	if (r->cost >= 0)
		return (enum cost)r->cost;
	if (page_faults)
		return COST_FAULTED;
	return r->leaks ? COST_LEAKED : COST_ALLOCATED;
}

bool format_wants_blocks(const struct format_request *r)
{
	return (r->format == FORMAT_JSON && r->leaks) ||
	       (r->format == FORMAT_ASCII_TREE && cost_of(r, false) == COST_LEAKED);
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

static struct text_options text_options(const struct format_request *r)
{
	bool given = r->top != TOP_USUAL;

	return (struct text_options){.top = given	 ? r->top
					    : r->verbose ? TOP_VERBOSE
							 : TOP_BRIEF,
				     .others = given ? r->top : 1,
				     .leaks_only = r->leaks,
				     .by = r->by,
				     .verbose = r->verbose};
}

int format_write(struct model *m, const struct format_request *r, FILE *out, struct mp_err *err)
{
	bool faults = m->info.what == MP_PAGE_FAULTS;
	enum cost cost = cost_of(r, faults);
	struct text_options text = text_options(r);
	int ret = 0;

	switch (r->format) {
	case FORMAT_JSON:
		ret = faults ? faults_json(m, r->by, out) : json_write(m, r->by, r->leaks, out);
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
	case FORMAT_ANNOTATE:
		return annotate_write(m, r->annotate, &r->prefixes, cost, out, err);
	case FORMAT_PEEK:
		return peek_write(m, r->peek, cost, r->top == TOP_USUAL ? TOP_VERBOSE : r->top, out,
				  err);
	case FORMAT_REPLAY:
		return replay_write(m, out, err);
	case FORMAT_HTML:
		return html_write(m, out, err);
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
