/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/continuous_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/options.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "control/agreement.h"
#include "fleet/container.h"
#include "model/filter/pattern.h"
#include "push/identity.h"

#define EVERY_MS	     60000u
#define LEAST_EVERY_MS	     1000u
#define MOST_EVERY_MS	     (24u * 3600 * 1000)
#define SPOOL_SIZE	     (256ull << 20)
#define LEAST_SPOOL	     (1u << 20)
#define MOST_PROCESSES	     10000
#define DEFAULT_PROCESSES    256
#define DEFAULT_OVERHEAD_PPM 10000u /* 1% */
#define RING_OF_SEVERAL	     (256u << 10)
#define QUEUE_OF_SEVERAL     (16u << 20)
#define OWN_PATH	     "memprof-%p.memprof"
/* The value of the header Authorization, for the only URL. */
#define AUTHORIZATION "MEMPROF_PUSH_AUTHORIZATION"

static int add_destination(struct continuous_options *c, const char *text)
{
	struct mp_err err = {0};

	if (c->stores.n == PUSH_DESTINATIONS)
		return usage_error("attach: --push: more than %d of them", PUSH_DESTINATIONS);
	if (destination_parse(text, &c->stores.destination[c->stores.n], &err))
		return usage_error("attach: %s", err.what);
	c->stores.n++;
	return 0;
}

static int add_headers(struct continuous_options *c, const char *path)
{
	struct mp_err err = {0};
	struct destination *d = &c->stores.destination[c->stores.n ? c->stores.n - 1 : 0];

	if (!c->stores.n || d->kind == DESTINATION_DIRECTORY)
		return usage_error(
		    "attach: --push-headers must be behind the --push URL that it is of");
	return destination_read_headers(d, path, &err) ? complain(&err) : 0;
}

static int add_label(struct continuous_options *c, const char *text)
{
	if (!identity_is_label(text))
		return usage_error("attach: --label: '%.100s' is not KEY=VALUE", text);
	if (c->push.labels == sizeof(c->labels) / sizeof(c->labels[0]))
		return usage_error("attach: --label: more than %zu of them",
				   sizeof(c->labels) / sizeof(c->labels[0]));
	c->labels[c->push.labels++] = text;
	return 0;
}

static int take_size(const char *option, const char *text, uint64_t least, uint64_t *size)
{
	if (parse_bytes(text, size) && *size >= least)
		return 0;
	return usage_error("attach: --%s: '%.100s' is not a size%s", option, text,
			   least > 1 ? " of at least 1M" : "");
}

/* Options of --push.  Return: 0, or an exit status after it printed an error; -1: not one of them. */
static int take_push(struct continuous_options *c, int opt, const char *arg)
{
	switch (opt) {
	case 258:
		if (parse_duration(arg, &c->push.every_ms) && c->push.every_ms >= LEAST_EVERY_MS &&
		    c->push.every_ms <= MOST_EVERY_MS)
			return 0;
		return usage_error("attach: --every: '%.100s' is not a duration from 1s to 24h",
				   arg);
	case 259:
		return add_label(c, arg);
	case 260:
		c->push.no_symbols = true;
		return 0;
	case 261:
		return add_headers(c, arg);
	case 262:
		c->stores.spool = arg;
		return 0;
	case 263:
		return take_size("spool-size", arg, LEAST_SPOOL, &c->stores.limit);
	default:
		return -1;
	}
}

/* --cgroup /system.slice, also as the directory of a mounted hierarchy. */
static int add_cgroup(struct continuous_options *c, const char *path)
{
	static const char mount[] = "/sys/fs/cgroup";
	const size_t n = sizeof(mount) - 1;

	if (path[0] != '/')
		return usage_error("attach: --cgroup: '%.100s' does not begin with a slash", path);
	if (!strncmp(path, mount, n))
		path += n;
	return vec_push(&c->fleet.filter.cgroup, path) ? MP_EXIT_FAILURE : 0;
}

/* Options of --all, as take_push(). */
static int take_filter(struct continuous_options *c, int opt, const char *arg)
{
	switch (opt) {
	case 266:
		c->comm = arg;
		return 0;
	case 267:
		return add_cgroup(c, arg);
	case 268:
		c->container = arg;
		return 0;
	case 269:
		return take_size("min-rss", arg, 1, &c->fleet.filter.min_rss);
	default:
		return -1;
	}
}

/* The others, as take_push(). */
static int take_general(struct continuous_options *c, int opt, const char *arg)
{
	switch (opt) {
	case 256:
		c->continuous = true;
		return 0;
	case 257:
		return add_destination(c, arg);
	case 264:
		c->metrics = arg;
		return 0;
	case 265:
		c->fleet.filter.all = true;
		return 0;
	case 270:
		if (parse_count(arg, &c->fleet.most) && c->fleet.most &&
		    c->fleet.most <= MOST_PROCESSES)
			return 0;
		return usage_error("attach: --most: '%.100s' is not a number from 1 to %d", arg,
				   MOST_PROCESSES);
	default:
		return -1;
	}
}

static const struct option table[] = {CONTINUOUS_LONG, {0}};

int continuous_option(struct continuous_options *c, int opt, const char *arg)
{
	int status = take_general(c, opt, arg);

	if (status < 0) {
		status = take_push(c, opt, arg);
		if (!status && !c->first)
			c->first = option_name(table, opt);
	}
	if (status < 0) {
		status = take_filter(c, opt, arg);
		if (!status && !c->first_of_all)
			c->first_of_all = option_name(table, opt);
	}
	return status < 0 ? 0 : status ? -1 : 1;
}

int continuous_process(struct continuous_options *c, int opt, const char *arg)
{
	struct tids several;
	int status = 0;

	if (opt == 'n' && *arg)
		return vec_push(&c->fleet.filter.name, arg) ? MP_EXIT_FAILURE : 0;
	if (opt == 'n')
		return usage_error("attach: -n: the name is empty");
	if (!process_read_several(arg, &several))
		status = usage_error("attach: -p: '%.100s' is not a process id", arg);
	for (size_t i = 0; !status && i < several.list.n; i++)
		status = vec_push(&c->fleet.filter.pid, several.list.at[i]) ? MP_EXIT_FAILURE : 0;
	vec_free(&several.list);
	return status;
}

/* Takes the credentials of the environment. */
static int authorize(struct continuous_options *c)
{
	const char *value = getenv(AUTHORIZATION);
	struct destination *only = NULL;
	char *header = NULL;
	int ret;

	if (!value || !*value)
		return 0;
	for (size_t i = 0; i < c->stores.n; i++) {
		struct destination *d = &c->stores.destination[i];

		if (d->kind == DESTINATION_DIRECTORY)
			continue;
		if (only)
			return usage_error("attach: " AUTHORIZATION
					   ": there are several URLs; use --push-headers");
		only = d;
	}
	if (!only)
		return 0;
	ret = asprintf(&header, "Authorization: %s", value) < 0
		  ? -ENOMEM
		  : destination_add_header(only, header);
	free(header);
	return ret ? usage_error("attach: " AUTHORIZATION " is not the value of a header") : 0;
}

bool continuous_wanted(const struct continuous_options *c, size_t processes)
{
	return c->stores.n || c->metrics || c->fleet.filter.all || processes > 1;
}

static int settle_filter(struct continuous_options *c)
{
	/* In a container that shares the machine's pid namespace, the second one is the machine's. */
	static const char *const roots[] = {"", "/proc/1/root", NULL};
	struct mp_err err = {0};
	struct pattern *comm = NULL;

	if (c->fleet.filter.all && (c->fleet.filter.pid.n || c->fleet.filter.name.n))
		return usage_error("attach: --all cannot be used with -p and -n");
	if (c->comm && pattern_new("comm", c->comm, &comm, &err))
		return usage_error("attach: --%s", err.what);
	c->fleet.filter.comm = comm;
	if (c->container && container_resolve(c->container, roots, c->container_id, &err))
		return complain(&err);
	c->fleet.filter.container = c->container ? c->container_id : NULL;
	if (!c->fleet.most)
		c->fleet.most = DEFAULT_PROCESSES;
	return 0;
}

static bool is_of_several(const struct continuous_options *c)
{
	const struct process_filter *f = &c->fleet.filter;

	return f->all || f->name.n || f->pid.n > 1;
}

/* Defaults with which hundreds of processes do not need too much. */
static void bound(const struct continuous_options *c, struct recording_options *o)
{
	if (!o->jobs)
		o->jobs = 1;
	if (!o->ring_size)
		o->ring_size = RING_OF_SEVERAL;
	if (!o->queue_size)
		o->queue_size = QUEUE_OF_SEVERAL;
	if (c->fleet.filter.all && !o->overhead_ppm && !o->sample_interval)
		o->overhead_ppm = DEFAULT_OVERHEAD_PPM;
}

static int settle_recording(struct continuous_options *c, struct recording_options *o)
{
	const char *bad = o->to		   ? "--to"
			  : o->announce	   ? "--announce"
			  : o->follow_fork ? "--follow-fork"
			  : o->follow_exec ? "--follow-exec"
			  : o->page_faults ? "--event=page-faults"
			  : o->via_kernel  ? "--via=kernel" /* its recorder cannot be asked */
					   : NULL;
	const char *of_events = option_of_events(o);
	const bool served = c->stores.n || c->metrics;

	if (bad)
		return usage_error(
		    "attach: %s cannot be used with --push, --metrics, --all and several processes",
		    bad);
	if (c->continuous && o->path)
		return usage_error("attach: --continuous keeps no recording, and -o names one");
	if (!served && c->continuous)
		return usage_error("attach: --continuous needs --push or --metrics");
	if (!served && !o->path)
		o->path = OWN_PATH;
	if (of_events && !o->path)
		return usage_error("attach: %s needs -o FILE, because %s keeps no recording",
				   of_events, c->stores.n ? "--push" : "--metrics");
	if (o->path && is_of_several(c) && !strstr(o->path, "%p"))
		return usage_error(
		    "attach: -o: the name for the recordings of several processes needs %%p, as in "
		    "memprof-%%p.memprof");
	o->live_only |= !o->path;
	if (is_of_several(c))
		bound(c, o);
	return 0;
}

int continuous_settle(struct continuous_options *c, bool wanted, struct recording_options *o)
{
	int status;

	if (c->first && !c->stores.n)
		return usage_error("attach: --%s needs --push", c->first);
	if (c->first_of_all && !c->fleet.filter.all)
		return usage_error("attach: --%s needs --all", c->first_of_all);
	if (!wanted)
		return c->continuous ? usage_error("attach: --continuous needs --push or --metrics")
				     : 0;
	c->push.label = c->labels;
	if (!c->push.every_ms)
		c->push.every_ms = EVERY_MS;
	if (!c->stores.limit)
		c->stores.limit = SPOOL_SIZE;
	c->fleet.push = &c->push;
	c->fleet.for_ms = o->for_ms;
	o->for_ms = 0;
	status = settle_filter(c);
	status = status ? status : settle_recording(c, o);
	return status ? status : authorize(c);
}

void continuous_free(struct continuous_options *c)
{
	for (size_t i = 0; i < c->stores.n; i++)
		destination_free(&c->stores.destination[i]);
	vec_free(&c->fleet.filter.pid);
	vec_free(&c->fleet.filter.name);
	vec_free(&c->fleet.filter.cgroup);
	pattern_free((struct pattern *)c->fleet.filter.comm);
}
