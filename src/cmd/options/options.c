/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/parse.h"
#include "control/agreement.h"
#include "control/output_name.h"
#include "formats/session.h"
#include "record/recorder.h"

static int refuse_value(struct mp_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse_value(struct mp_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	return -1;
}

/* Return: 1 handled, 0 not a shared option, -1 with @err, without the option's name. */
static int take_shared(int opt, const char *arg, struct recording_options *o, struct mp_err *err)
{
	switch (opt) {
	case 'o':
		o->path = arg;
		if (output_pattern_ok(arg))
			return 1;
		return refuse_value(err,
				    "'%s': placeholders are %%p pid, %%e command, %%t time, %%n "
				    "count, %%%% percent",
				    arg);
	case 'W':
		o->follow_fork = true;
		return 1;
	case 'Y':
		if (parse_bytes(arg, &o->carry_budget) && o->carry_budget <= CARRY_MAX_BUDGET)
			return 1;
		return refuse_value(err, "'%s' is not a size of at most 20M", arg);
	case 'X':
		o->follow_exec = true;
		return 1;
	case 'x':
		o->follow_exec = o->replace_at_exec = false;
		return 1;
	case 'F':
		if (parse_duration(arg, &o->for_ms) && o->for_ms)
			return 1;
		return refuse_value(err, "'%s' is not a duration such as 30s, 500ms or 5m", arg);
	case 'L':
		o->lossless = true;
		return 1;
	case 'U':
		o->no_thinning = true;
		return 1;
	case 'q':
		o->quiet = true;
		return 1;
	case 'v':
		o->verbose = true;
		return 1;
	case 'C':
		o->history = false;
		if (parse_duration(arg, &o->cull_ms) && o->cull_ms)
			return 1;
		return refuse_value(err, "'%s' is not a duration such as 10s or 500ms", arg);
	case 'H':
		o->history = true;
		o->cull_ms = 0;
		return 1;
	case 'D':
		if (parse_count(arg, &o->depth) && o->depth)
			return 1;
		return refuse_value(err, "'%s' is not a number of frames", arg);
	case 'T':
		if (o->select.nthreads == SELECT_THREADS)
			return refuse_value(err, "more than %d patterns", SELECT_THREADS);
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
		return refuse_value(err, "'%s' is neither agent nor kernel", arg);
	case 'E':
		o->page_faults = !strcmp(arg, "page-faults");
		if (o->page_faults || !strcmp(arg, "allocations"))
			return 1;
		return refuse_value(err, "'%s' is neither allocations nor page-faults", arg);
	case 'K':
		if (parse_bytes(arg, &o->stack_size) && o->stack_size &&
		    o->stack_size <= OPTION_MAX_STACK)
			return 1;
		return refuse_value(err, "'%s' is not a size of at most 64000 bytes", arg);
	case 'R':
		if (parse_bytes(arg, &o->ring_size) && option_is_ring(o->ring_size))
			return 1;
		return refuse_value(err, "'%s' is not a power of two from 64k to 64M", arg);
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
		return refuse_value(
		    err, "'%s' is not a number of bytes from 1 to 1024G, such as 512k", arg);
	case 'O':
		if (parse_part(arg, &o->overhead_ppm) && o->overhead_ppm >= OPTION_MIN_PART)
			return 1;
		return refuse_value(err, "'%s' is not a part from 0.1%% to 100%%, such as 1%%",
				    arg);
	case 'M':
		if (parse_bytes(arg, &o->rotate) && o->rotate >= OPTION_MIN_PIECE)
			return 1;
		return refuse_value(err, "'%s' is not a size of at least 64k, such as 500M", arg);
	case 'k':
		if (parse_count(arg, &o->keep) && o->keep)
			return 1;
		return refuse_value(err, "'%s' is not a number of pieces", arg);
	case 'j':
		if (parse_count(arg, &o->jobs) && o->jobs && o->jobs <= RECORDER_JOBS)
			return 1;
		return refuse_value(err, "'%s' is not a number of threads from 1 to %u", arg,
				    RECORDER_JOBS);
	case 'l':
		o->live_only = true;
		return 1;
	case 'G':
		o->to = arg;
		return 1;
	case 'A':
		o->announce = true;
		return 1;
	case 't':
		o->token_file = arg;
		return 1;
	case 'b':
		if (parse_bytes(arg, &o->send_buffer) && o->send_buffer >= OPTION_MIN_SEND &&
		    o->send_buffer <= OPTION_MAX_SEND)
			return 1;
		return refuse_value(err, "'%s' is not a size from 256k to 4G", arg);
	case 'w':
		if (parse_duration(arg, &o->deliver_ms) && o->deliver_ms)
			return 1;
		return refuse_value(err, "'%s' is not a duration such as 30s or 5m", arg);
	case 'N':
		o->embed = true;
		return 1;
	case 'I':
		o->debuginfod = DEBUGINFOD_ALWAYS;
		return 1;
	case 'i':
		o->debuginfod = DEBUGINFOD_NEVER;
		return 1;
	case 'Q':
		if (parse_bytes(arg, &o->queue_size) && o->queue_size >= OPTION_MIN_QUEUE)
			return 1;
		return refuse_value(err, "'%s' is not a size of at least 64k", arg);
	}
	return 0;
}

static const struct option recording_table[] = {RECORDING_LONG, {0}};

int recording_option(const char *command, int opt, const char *arg, struct recording_options *o)
{
	struct mp_err err = {0};
	int taken = take_shared(opt, arg, o, &err);

	if (taken < 0)
		usage_error("%s: --%s: %s", command, option_name(recording_table, opt), err.what);
	return taken;
}

static bool parse_switch(const char *text, bool *on)
{
	*on = !strcmp(text, "1") || !strcmp(text, "yes");
	return *on || !*text || !strcmp(text, "0") || !strcmp(text, "no");
}

int recording_environment(const char *command, struct recording_options *o)
{
	for (const struct option *opt = recording_table; opt->name; opt++) {
		char name[64] = "MEMPROF_", *p = name + strlen(name);
		const char *value;
		struct mp_err err = {0};
		bool on = true;

		for (const char *c = opt->name; *c; c++)
			*p++ = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
		*p = 0;
		value = getenv(name);
		if (!value)
			continue;
		if (opt->has_arg == no_argument && !parse_switch(value, &on))
			refuse_value(&err, "'%s' is neither 1 nor 0", value);
		else if (on)
			(void)take_shared(opt->val, value, o, &err);
		if (err.what[0])
			return usage_error("%s: %s: %s", command, name, err.what);
	}
	return 0;
}

int recording_options_settle(const char *command, struct recording_options *o)
{
	struct mp_err err = {0};

	if (options_agree(o, &err))
		return usage_error("%s: %s", command, err.what);
	o->servers = servers_new(o->debuginfod);
	return 0;
}
