/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/agreement.h"

#include <errno.h>
#include <stddef.h>
#include "formats/session.h"
#include "record/recorder.h"

#define CULL_MS	    1000	/* default of --cull */
#define SEND_BUFFER (16u << 20) /* default of --send-buffer */
#define DELIVER_MS  30000	/* default of --deliver-within */

/* Rejects the option @bad, unless it is NULL.  @why: the rest of the message. */
static int reject(const char *bad, const char *why, struct mp_err *err)
{
	return bad ? mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s %s", bad, why) : 0;
}

/* Rejects values that are not 0, for a default, and not in the range of their option. */
static int in_ranges(const struct recording_options *o, struct mp_err *err)
{
	const char *bad =
	    o->ring_size && !option_is_ring(o->ring_size)	? "--ring-size"
	    : o->queue_size && o->queue_size < OPTION_MIN_QUEUE ? "--queue-size"
	    : o->jobs > RECORDER_JOBS				? "--jobs"
	    : o->for_ms > OPTION_MAX_TIME_MS			? "--for"
	    : o->cull_ms > OPTION_MAX_TIME_MS			? "--cull"
	    : o->deliver_ms > OPTION_MAX_TIME_MS		? "--deliver-within"
	    : o->sample_interval > SS_MAX_INTERVAL		? "--sample"
	    : o->overhead_ppm &&
		    (o->overhead_ppm < OPTION_MIN_PART || o->overhead_ppm > OPTION_MAX_PART)
		? "--overhead"
	    : o->rotate && o->rotate < OPTION_MIN_PIECE ? "--rotate"
	    : o->send_buffer &&
		    (o->send_buffer < OPTION_MIN_SEND || o->send_buffer > OPTION_MAX_SEND)
		? "--send-buffer"
	    : o->stack_size > OPTION_MAX_STACK ? "--stack-size"
					       : NULL;

	return reject(bad, "is not in its range (memprof attach --help)", err);
}

/* Rejects options that concern an allocator. */
static int page_faults_agree(const struct recording_options *o, struct mp_err *err)
{
	const char *bad = o->via_agent	       ? "--via=agent"
			  : o->cull_ms	       ? "--cull"
			  : o->sample_interval ? "--sample"
			  : o->overhead_ppm    ? "--overhead"
			  : o->zero	       ? "--zero"
			  : o->free_stacks     ? "--free-stacks"
					       : NULL;

	return reject(bad, "cannot be used with --event=page-faults: it is about allocations", err);
}

/* Rejects options that decide themselves what is recorded. */
static int budget_agrees(const struct recording_options *o, struct mp_err *err)
{
	const char *bad = o->sample_interval ? "--sample"
			  : o->lossless	     ? "--lossless"
			  : o->no_thinning   ? "--no-thinning"
			  : o->zero	     ? "--zero"
			  : o->free_stacks   ? "--free-stacks"
					     : NULL;

	return reject(
	    bad, "and --overhead cannot be combined: --overhead decides how much is recorded", err);
}

const char *option_of_events(const struct recording_options *o)
{
	return o->history	? "--history"
	       : o->cull_ms	? "--cull"
	       : o->rotate	? "--rotate"
	       : o->keep	? "--keep"
	       : o->free_stacks ? "--free-stacks"
	       : o->page_faults ? "--event=page-faults"
				: NULL;
}

static int live_only_agrees(const struct recording_options *o, struct mp_err *err)
{
	return reject(option_of_events(o),
		      "cannot be used with --live-only, which keeps no events: only what is live",
		      err);
}

static int delivery_agrees(const struct recording_options *o, struct mp_err *err)
{
	const char *bad = o->rotate ? "--rotate" : o->live_only ? "--live-only" : NULL;
	bool sends = o->to || o->announce;

	if (o->to && o->announce)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--to and --announce cannot be combined");
	if (sends && !o->token_file)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--%s needs --token FILE: memprof gather --new-token FILE "
			       "makes one",
			       o->to ? "to" : "announce");
	if (!sends && (o->token_file || o->send_buffer || o->deliver_ms))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--token, --send-buffer and --deliver-within need --to or "
			       "--announce");
	return sends ? reject(bad, "cannot be used with --to and --announce, which send one file",
			      err)
		     : 0;
}

int options_agree(struct recording_options *o, struct mp_err *err)
{
	if (in_ranges(o, err) || delivery_agrees(o, err))
		return -EINVAL;
	o->send_buffer = o->send_buffer ? o->send_buffer : SEND_BUFFER;
	o->deliver_ms = o->deliver_ms ? o->deliver_ms : DELIVER_MS;
	if (o->live_only && live_only_agrees(o, err))
		return -EINVAL;
	if (o->keep && !o->rotate)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--keep needs --rotate: it says how many of the pieces to "
			       "keep");
	if (o->page_faults && page_faults_agree(o, err))
		return -EINVAL;
	o->via_kernel |= o->page_faults;
	if (o->via_kernel && o->lossless)
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "--lossless cannot be used with --via=kernel or --event=page-faults: the "
		    "kernel does not make the process wait");
	if (o->lossless && o->no_thinning)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--lossless and --no-thinning cannot be combined: with "
			       "--lossless no event is too many");
	if (o->via_kernel && (o->sample_interval || o->overhead_ppm))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s cannot be used with --via=kernel: it needs the agent",
			       o->sample_interval ? "--sample" : "--overhead");
	if (o->overhead_ppm && budget_agrees(o, err))
		return -EINVAL;
	if (o->via_kernel && (o->follow_fork || o->follow_exec))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--follow-fork and --follow-exec cannot be used with "
			       "--via=kernel: they need the agent's hooks");
	if ((o->zero || o->free_stacks) && (o->sample_interval || o->via_kernel))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--zero and --free-stacks cannot be used with --sample or "
			       "--via=kernel: they need every call to run through the agent");
	if (o->cull_ms && o->sample_interval)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--cull and --sample cannot be combined: --cull needs every "
			       "block, --sample records few of them");
	/* The stacks of frees belong to single blocks. */
	if (!o->history && !o->sample_interval && !o->page_faults && !o->free_stacks &&
	    !o->cull_ms && !o->live_only)
		o->cull_ms = CULL_MS;
	return 0;
}
