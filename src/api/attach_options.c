/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/attach_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "api/sized.h"
#include "control/agreement.h"
#include "control/output_name.h"
#include "record/pieces/carry.h"

#define FLAGS (2 * (uint64_t)MEMPROF_PAGE_FAULTS - 1)

/* Copies a string that can be NULL.  Return: false when out of memory. */
static bool copy_text(const char **given, char **copy)
{
	if (!*given)
		return true;
	*copy = strdup(*given);
	*given = *copy;
	return *copy;
}

static void translate(const struct memprof_attach_options *g, struct recording_options *o)
{
	*o = (struct recording_options){
	    .path = g->output,
	    .for_ms = g->for_ms,
	    .ring_size = g->ring_bytes,
	    .queue_size = g->queue_bytes,
	    .jobs = g->jobs,
	    .cull_ms = g->cull_ms,
	    .history = g->flags & MEMPROF_HISTORY,
	    .sample_interval = g->sample_interval,
	    .overhead_ppm = g->overhead_ppm,
	    .rotate = g->rotate_bytes,
	    .keep = g->keep,
	    .live_only = g->flags & MEMPROF_LIVE_ONLY,
	    .carry_budget = CARRY_BUDGET,
	    .depth = g->depth,
	    .select.paused = g->flags & MEMPROF_PAUSED,
	    .free_stacks = g->flags & MEMPROF_FREE_STACKS,
	    .via_kernel = g->flags & MEMPROF_VIA_KERNEL,
	    .page_faults = g->flags & MEMPROF_PAGE_FAULTS,
	    .embed = g->flags & MEMPROF_EMBED,
	    .debuginfod = DEBUGINFOD_NEVER,
	    .to = g->to,
	    .token_file = g->token_file,
	    .send_buffer = g->send_buffer_bytes,
	    .deliver_ms = g->deliver_ms,
	    .lossless = g->flags & MEMPROF_LOSSLESS,
	    .no_thinning = g->flags & MEMPROF_NO_THINNING,
	};
}

int attach_options_take(const struct memprof_attach_options *from, struct attach_options *copy,
			struct recording_options *o, struct mp_err *err)
{
	struct memprof_attach_options *g = &copy->given;

	memset(copy, 0, sizeof(*copy));
	if (sized_take(from, g, sizeof(*g), err))
		return -E2BIG;
	if (!copy_text(&g->output, &copy->output) || !copy_text(&g->to, &copy->to) ||
	    !copy_text(&g->token_file, &copy->token_file))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (g->flags & ~FLAGS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "unknown flags");
	if (g->output && !output_pattern_ok(g->output))
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "the output has an unknown placeholder: only %%p, %%e, %%t, %%n and %%%%");
	translate(g, o);
	return options_agree(o, err);
}

void attach_options_free(struct attach_options *copy)
{
	free(copy->output);
	free(copy->to);
	free(copy->token_file);
}
