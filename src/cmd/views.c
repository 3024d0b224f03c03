/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/views.h"

#include <errno.h>
#include <string.h>
#include "cmd/cmd.h"
#include "export/lists/allocations.h"
#include "export/faults.h"
#include "export/lists/groups.h"
#include "export/lists/map_usage.h"
#include "export/lists/sum_lists.h"
#include "export/lists/timeline.h"
#include "lib/human.h"
#include "model/filter/amount.h"
#include "model/model.h"

#define TEXT_COUNT 100	/* default number of entries in a text list */
#define JSON_COUNT 1000 /* default number of single events in JSON */

static const char *const names[] = {
    [VIEW_ALLOCATIONS] = "allocations",
    [VIEW_GROUPS] = "groups",
    [VIEW_LIBRARIES] = "libraries",
    [VIEW_THREADS] = "threads",
    [VIEW_SIZES] = "sizes",
    [VIEW_TIMELINE] = "timeline",
    [VIEW_MAPS] = "maps",
    [VIEW_FAULTS] = "faults",
};

static int set_name(struct view_request *v, const char *value)
{
	for (int i = VIEW_ALLOCATIONS; i <= VIEW_FAULTS; i++) {
		if (!strcmp(value, names[i])) {
			v->name = (enum view_name)i;
			return 0;
		}
	}
	return usage_error(
	    "report: --view: '%.100s' is none of allocations, groups, libraries, threads, "
	    "sizes, timeline, maps, faults",
	    value);
}

int view_option(struct view_request *v, int opt, const char *value)
{
	switch (opt - VIEW_OPTION) {
	case 0:
		return set_name(v, value);
	case 1:
		v->sort_by = value;
		return 0;
	case 2:
		v->ordered = true;
		v->view.descending = !strcmp(value, "dsc");
		if (v->view.descending || !strcmp(value, "asc"))
			return 0;
		return usage_error("report: --order: '%.100s' is neither asc nor dsc", value);
	case 3:
		v->skipped = true;
		if (amount_integer(value, &v->view.skip))
			return 0;
		return usage_error("report: --skip: '%.100s' is not a whole number", value);
	default:
		v->counted = true;
		if (!strcmp(value, "all"))
			v->view.count = 0;
		else if (!amount_integer(value, &v->view.count))
			return usage_error(
			    "report: --count: '%.100s' is neither a whole number nor all", value);
		if (!v->view.count)
			v->view.count = VIEW_ALL;
		return 0;
	}
}

static int bad_sort_key(const struct view_request *v, const char *(*name)(uint32_t))
{
	char list[1024] = "";

	for (uint32_t i = 0; name(i); i++) {
		size_t n = strlen(list);

		snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", name(i));
	}
	return usage_error("report: --sort-by: '%.100s' is none of %s", v->sort_by, list);
}

static int settle_list(struct view_request *v, bool (*key)(const char *, uint32_t *),
		       const char *(*name)(uint32_t), const char *usual)
{
	if (!key(v->sort_by ? v->sort_by : usual, &v->view.sort))
		return bad_sort_key(v, name);
	return 0;
}

int view_settle(struct view_request *v, bool json)
{
	v->view.json = json;
	if (!v->counted)
		v->view.count = !json ? TEXT_COUNT : v->name == VIEW_GROUPS ? VIEW_ALL : JSON_COUNT;
	if (v->name == VIEW_ALLOCATIONS || v->name == VIEW_FAULTS)
		return settle_list(v, allocations_sort_key, allocations_sort_name, "timestamp");
	if (v->name == VIEW_GROUPS) {
		if (!v->ordered && !v->sort_by)
			v->view.descending = true;
		return settle_list(v, groups_sort_key, groups_sort_name, "only_matched.size");
	}
	if (v->sort_by || v->ordered || v->counted || v->skipped)
		return usage_error("report: --sort-by, --order, --skip and --count need --view "
				   "allocations, groups or faults");
	return 0;
}

int view_suits(const struct view_request *v, const struct mp_info *info, struct mp_err *err)
{
	bool faults = info->what == MP_PAGE_FAULTS;

	if (info->live_only && v->name != VIEW_ALLOCATIONS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--view %s: the recording has only the live heap (--live-only): use "
			       "--view allocations",
			       names[v->name]);
	if (v->name == VIEW_MAPS || faults == (v->name == VIEW_FAULTS))
		return 0;
	return mp_fail(
	    err, MP_EXIT_USAGE, -EINVAL,
	    faults ? "--view %s: a recording of page faults has only the views faults and maps"
		   : "--view %s: this is a recording of allocations",
	    names[v->name]);
}

static void timeline_text(const struct model *m, FILE *out)
{
	uint64_t before = 0;

	fprintf(out, "%11s %10s %10s %10s %12s %12s\n", "until s", "live", "highest", "blocks",
		"allocs/s", "frees/s");
	vec_for_each (&m->sums.timeline, p) {
		double seconds = (double)(p->time_ns - before) / 1e9;

		before = p->time_ns;
		fprintf(out, "%11.3f %10s %10s %10s %12.0f %12.0f\n", (double)p->time_ns / 1e9,
			human(p->live_bytes), human(p->peak_bytes), thousands(p->live_blocks),
			seconds > 0 ? (double)p->allocations / seconds : 0,
			seconds > 0 ? (double)p->frees / seconds : 0);
	}
}

/* In JSON, a list of single events that is cut without --count is easily taken for all of it. */
static void tell_rest(const struct view_request *v, uint64_t total)
{
	uint64_t end = view_end(&v->view, total);

	if (v->view.json && !v->counted && end < total)
		fprintf(stderr,
			"memprof: the list has the first %s of %s; --count N has more, --count all "
			"has all of them\n",
			thousands(end - v->view.skip),
			counted(total, v->name == VIEW_FAULTS ? "page fault" : "allocation"));
}

static int write_events(struct model *m, const struct view_request *v, FILE *out,
			struct mp_err *err)
{
	uint64_t total = 0;
	int ret = v->name == VIEW_FAULTS ? faults_list(m, &v->view, out, &total, err)
					 : allocations_write(m, &v->view, out, &total, err);

	if (!ret)
		tell_rest(v, total);
	return ret;
}

int view_write(struct model *m, const struct view_request *v, FILE *out, struct mp_err *err)
{
	int ret = 0;

	switch (v->name) {
	case VIEW_ALLOCATIONS:
	case VIEW_FAULTS:
		return write_events(m, v, out, err);
	case VIEW_GROUPS:
		ret = groups_write(m, &v->view, out);
		break;
	case VIEW_LIBRARIES:
		ret = sum_lists_write(m, SUMS_LIBRARY, v->view.json, out);
		break;
	case VIEW_THREADS:
		ret = sum_lists_write(m, SUMS_THREAD, v->view.json, out);
		break;
	case VIEW_SIZES:
		ret = sum_lists_write(m, SUMS_SIZE, v->view.json, out);
		break;
	case VIEW_MAPS:
		ret = map_usage_write(m, v->view.json, out);
		break;
	default:
		if (v->view.json)
			ret = timeline_write(m, out);
		else
			timeline_text(m, out);
	}
	if (ret)
		mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
	return ret;
}
