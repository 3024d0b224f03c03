/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/parse.h"
#include "control/output_name.h"
#include "formats/session.h"
#include "record/carry.h"

#define MIN_RING  (64u << 10)
#define MAX_RING  (64u << 20)
#define MIN_PIECE (64u << 10)

int recording_option(int opt, const char *arg, struct recording_options *o)
{
	switch (opt) {
	case 'o':
		o->path = arg;
		if (output_pattern_ok(arg))
			return 1;
		usage_error("--output: '%s': placeholders are %%p pid, %%e command, %%t time, %%n "
			    "count, %%%% percent",
			    arg);
		return -1;
	case 'W':
		o->follow_fork = true;
		return 1;
	case 'Y':
		if (parse_bytes(arg, &o->carry_budget) && o->carry_budget <= CARRY_MAX_BUDGET)
			return 1;
		usage_error("--carry-budget: '%s' is not a size of at most 20M", arg);
		return -1;
	case 'X':
		o->follow_exec = true;
		return 1;
	case 'F':
		if (parse_duration(arg, &o->for_ms) && o->for_ms)
			return 1;
		usage_error("--for: '%s' is not a duration such as 30s, 500ms or 5m", arg);
		return -1;
	case 'L':
		o->lossless = true;
		return 1;
	case 'q':
		o->quiet = true;
		return 1;
	case 'C':
		if (parse_duration(arg, &o->cull_ms) && o->cull_ms)
			return 1;
		usage_error("--cull: '%s' is not a duration such as 10s or 500ms", arg);
		return -1;
	case 'D':
		if (parse_count(arg, &o->depth) && o->depth)
			return 1;
		usage_error("--depth: '%s' is not a number of frames", arg);
		return -1;
	case 'T':
		if (o->select.nthreads == SELECT_THREADS) {
			usage_error("--thread: more than %d patterns", SELECT_THREADS);
			return -1;
		}
		o->select.thread[o->select.nthreads++] = arg;
		return 1;
	case 'P':
		o->select.paused = true;
		return 1;
	case 'V':
		o->via_kernel = !strcmp(arg, "kernel");
		o->via_agent = !strcmp(arg, "agent");
		if (o->via_kernel || o->via_agent)
			return 1;
		usage_error("--via: '%s' is neither agent nor kernel", arg);
		return -1;
	case 'E':
		o->page_faults = !strcmp(arg, "page-faults");
		if (o->page_faults || !strcmp(arg, "allocations"))
			return 1;
		usage_error("--event: '%s' is neither allocations nor page-faults", arg);
		return -1;
	case 'K':
		if (parse_bytes(arg, &o->stack_size) && o->stack_size && o->stack_size <= 64000)
			return 1;
		usage_error("--stack-size: '%s' is not a size of at most 64000 bytes", arg);
		return -1;
	case 'R':
		if (parse_bytes(arg, &o->ring_size) && o->ring_size >= MIN_RING &&
		    o->ring_size <= MAX_RING && !(o->ring_size & (o->ring_size - 1)))
			return 1;
		usage_error("--ring-size: '%s' is not a power of two from 64k to 64M", arg);
		return -1;
	case 'J':
		o->free_stacks = true;
		return 1;
	case 'Z':
		o->zero = true;
		return 1;
	case 'S':
		if (parse_bytes(arg, &o->sample_interval) && o->sample_interval &&
		    o->sample_interval <= SS_MAX_INTERVAL)
			return 1;
		usage_error("--sample: '%s' is not a number of bytes from 1 to 1024G, such as 512k",
			    arg);
		return -1;
	case 'M':
		if (parse_bytes(arg, &o->rotate) && o->rotate >= MIN_PIECE)
			return 1;
		usage_error("--rotate: '%s' is not a size of at least 64k, such as 500M", arg);
		return -1;
	case 'N':
		o->embed = true;
		return 1;
	case 'Q':
		if (parse_bytes(arg, &o->queue_size) && o->queue_size >= MIN_RING)
			return 1;
		usage_error("--queue-size: '%s' is not a size of at least 64k", arg);
		return -1;
	}
	return 0;
}

static bool parse_switch(const char *text, bool *on)
{
	*on = !strcmp(text, "1") || !strcmp(text, "yes");
	return *on || !*text || !strcmp(text, "0") || !strcmp(text, "no");
}

int recording_environment(struct recording_options *o)
{
	static const struct option options[] = {RECORDING_LONG, {0}};

	for (const struct option *opt = options; opt->name; opt++) {
		char name[64] = "MEMPROF_", *p = name + strlen(name);
		const char *value;
		bool on = true;

		for (const char *c = opt->name; *c; c++)
			*p++ = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
		*p = 0;
		value = getenv(name);
		if (!value)
			continue;
		if (opt->has_arg == no_argument && !parse_switch(value, &on)) {
			usage_error("%s: '%s' is neither 1 nor 0", name, value);
			return -1;
		}
		if (on && recording_option(opt->val, value, o) < 0)
			return -1;
	}
	return 0;
}

/* Rejects options that concern an allocator. */
static int page_faults_agree(const struct recording_options *o)
{
	const char *bad = o->via_agent	       ? "--via=agent"
			  : o->cull_ms	       ? "--cull"
			  : o->sample_interval ? "--sample"
			  : o->zero	       ? "--zero"
			  : o->free_stacks     ? "--free-stacks"
					       : NULL;

	return bad ? usage_error(
			 "%s cannot be used with --event=page-faults: it is about allocations", bad)
		   : 0;
}

int recording_options_settle(struct recording_options *o)
{
	if (o->page_faults && page_faults_agree(o))
		return MP_EXIT_USAGE;
	o->via_kernel |= o->page_faults;
	if (o->via_kernel && o->lossless)
		return usage_error(
		    "--lossless cannot be used with --via=kernel or --event=page-faults: the "
		    "kernel does not make the process wait");
	if (o->via_kernel && o->sample_interval)
		return usage_error("--sample cannot be used with --via=kernel: it needs the agent");
	if (o->via_kernel && (o->follow_fork || o->follow_exec))
		return usage_error("--follow-fork and --follow-exec cannot be used with "
				   "--via=kernel: they need the agent's hooks");
	if ((o->zero || o->free_stacks) && (o->sample_interval || o->via_kernel))
		return usage_error("--zero and --free-stacks cannot be used with --sample or "
				   "--via=kernel: they need every call to run through the agent");
	if (o->cull_ms && o->sample_interval)
		return usage_error("--cull and --sample cannot be combined: --cull needs every "
				   "block, --sample records few of them");
	return 0;
}
