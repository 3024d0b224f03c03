/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/formats.h"

#include <errno.h>
#include "cmd/cmd.h"
#include "model/filter/amount.h"

#define MAX_LINES 100000u

int show_option(struct shown *s, int opt, const char *value, const char *command)
{
	uint64_t n;

	switch (opt - SHOW_OPTION) {
	case 0:
		s->full = true;
		return 0;
	case 1:
		if (!amount_integer(value, &n) || !n || n > MAX_LINES)
			return usage_error("%s: --frames: '%.100s' is not a number from 1 to %u",
					   command, value, MAX_LINES);
		s->frames = (uint32_t)n;
		return 0;
	default:
		s->lines = true;
		return 0;
	}
}

int format_suits(const struct format_request *r, const struct mp_info *info, struct mp_err *err)
{
	bool faults = info->what == MP_PAGE_FAULTS;

	if (r->cost >= 0 && cost_is_of_faults((enum cost)r->cost) != faults)
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    faults ? "--cost: for a recording of page faults use faulted, faults or major"
			   : "--cost: faulted, faults and major need a recording of page faults");
	if (info->live_only &&
	    (!format_facts(r->format)->of_live || (r->cost >= 0 && r->cost != COST_LEAKED)))
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "the recording has only the live heap (--live-only), not the calls "
		    "before: use the summary, --json, --tree, --ascii-tree, --collapsed, "
		    "--flamegraph, --icicle, --speedscope, --peek or --annotate, with "
		    "--cost live");
	if (r->format == FORMAT_ANNOTATE && r->cost >= 0 && !cost_is_bytes((enum cost)r->cost))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--annotate: --cost must be one in bytes: live, allocated, peak or "
			       "mapped");
	if (faults && r->leaks)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--not-freed: a recording of page faults contains no blocks");
	if (faults && !format_facts(r->format)->of_faults)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "this format is for allocations; for a recording of page faults use "
			       "the summary, --json, --tree, --collapsed, --flamegraph, --icicle, "
			       "--peek or --view faults");
	return 0;
}
