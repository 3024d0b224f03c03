/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/pushing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/own_recorder.h"
#include "cmd/parse.h"
#include "control/agreement.h"
#include "lib/ending_signals.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "push/identity.h"
#include "push/scrape.h"

#define EVERY_MS       60000u
#define LEAST_EVERY_MS 1000u
#define MOST_EVERY_MS  (24u * 3600 * 1000)
#define SPOOL_SIZE     (256ull << 20)
#define LEAST_SPOOL    (1u << 20)
/* The value of the header Authorization, for the only URL. */
#define AUTHORIZATION "MEMPROF_PUSH_AUTHORIZATION"

static int add_destination(struct pushing *p, const char *text)
{
	struct mp_err err = {0};

	if (p->push.n == PUSH_DESTINATIONS)
		return usage_error("attach: --push: more than %d of them", PUSH_DESTINATIONS);
	if (destination_parse(text, &p->push.destination[p->push.n], &err))
		return usage_error("attach: %s", err.what);
	p->push.n++;
	return 0;
}

static int add_headers(struct pushing *p, const char *path)
{
	struct mp_err err = {0};
	struct destination *d = &p->push.destination[p->push.n ? p->push.n - 1 : 0];

	if (!p->push.n || d->kind == DESTINATION_DIRECTORY)
		return usage_error(
		    "attach: --push-headers must be behind the --push URL that it is of");
	return destination_read_headers(d, path, &err) ? complain(&err) : 0;
}

static int add_label(struct pushing *p, const char *text)
{
	if (!identity_is_label(text))
		return usage_error("attach: --label: '%.100s' is not KEY=VALUE", text);
	if (p->push.labels == sizeof(p->labels) / sizeof(p->labels[0]))
		return usage_error("attach: --label: more than %zu of them",
				   sizeof(p->labels) / sizeof(p->labels[0]));
	p->labels[p->push.labels++] = text;
	return 0;
}

/* Return: 0, or an exit status after it printed an error; -1: not an option of these. */
static int take(struct pushing *p, int opt, const char *arg)
{
	switch (opt) {
	case 256:
		p->continuous = true;
		return 0;
	case 257:
		return add_destination(p, arg);
	case 258:
		if (parse_duration(arg, &p->push.every_ms) && p->push.every_ms >= LEAST_EVERY_MS &&
		    p->push.every_ms <= MOST_EVERY_MS)
			return 0;
		return usage_error("attach: --every: '%.100s' is not a duration from 1s to 24h",
				   arg);
	case 259:
		return add_label(p, arg);
	case 260:
		p->push.no_symbols = true;
		return 0;
	case 261:
		return add_headers(p, arg);
	case 262:
		p->push.spool = arg;
		return 0;
	case 263:
		if (parse_bytes(arg, &p->push.limit) && p->push.limit >= LEAST_SPOOL)
			return 0;
		return usage_error("attach: --spool-size: '%.100s' is not a size of at least 1M",
				   arg);
	case 264:
		p->metrics = arg;
		return 0;
	default:
		return -1;
	}
}

int pushing_option(struct pushing *p, int opt, const char *arg)
{
	const int status = take(p, opt, arg);

	p->any |= status == 0;
	return status < 0 ? 0 : status ? -1 : 1;
}

/* Takes the credentials of the environment. */
static int authorize(struct pushing *p)
{
	const char *value = getenv(AUTHORIZATION);
	struct destination *only = NULL;
	char *header = NULL;
	int ret;

	if (!value || !*value)
		return 0;
	for (size_t i = 0; i < p->push.n; i++) {
		struct destination *d = &p->push.destination[i];

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

bool pushing_wanted(const struct pushing *p)
{
	return p->push.n || p->metrics;
}

int pushing_settle(struct pushing *p, struct recording_options *o)
{
	const char *bad = o->to		   ? "--to"
			  : o->announce	   ? "--announce"
			  : o->follow_fork ? "--follow-fork"
			  : o->follow_exec ? "--follow-exec"
			  : o->page_faults ? "--event=page-faults"
					   : NULL;
	const char *of_events = option_of_events(o);

	if (!pushing_wanted(p))
		return p->any ? usage_error("attach: --continuous, --every, --label, --no-symbols, "
					    "--push-headers, --spool and --spool-size need --push")
			      : 0;
	if (bad)
		return usage_error("attach: %s cannot be used with %s", bad,
				   p->push.n ? "--push" : "--metrics");
	if (of_events && !o->path)
		return usage_error("attach: %s needs -o FILE, because %s keeps no recording",
				   of_events, p->push.n ? "--push" : "--metrics");
	if (p->continuous && o->path)
		return usage_error("attach: --continuous keeps no recording, and -o names one");
	p->push.label = p->labels;
	if (!p->push.every_ms)
		p->push.every_ms = EVERY_MS;
	if (!p->push.limit)
		p->push.limit = SPOOL_SIZE;
	p->push.for_ms = o->for_ms;
	o->for_ms = 0;
	o->live_only |= !o->path;
	return authorize(p);
}

/* Prints that a store takes no profiles, or that it takes them again. */
static void report(void *ctx, const struct destination *d, const char *failed)
{
	(void)ctx;
	if (failed)
		fprintf(stderr, "memprof: cannot push to %s: %s\n", printable(d->url), failed);
	else
		fprintf(stderr, "memprof: pushing to %s again\n", printable(d->url));
}

static void print_result(const struct pushing *p, const struct push_result *r)
{
	const uint64_t lost = r->lost + (p->push.spool ? 0 : r->waiting);

	if (p->push.n)
		printf("pushed %s\n", counted(r->windows, "profile"));
	if (r->rejected)
		fprintf(stderr, "memprof: the stores rejected %s\n",
			counted(r->rejected, "profile"));
	if (lost)
		fprintf(stderr, "memprof: %s lost\n", counted(lost, "profile"));
	if (p->push.spool && r->waiting)
		fprintf(stderr,
			"memprof: waiting in %s: %s; the next --push to the same URL sends them\n",
			printable(p->push.spool), counted(r->waiting, "profile"));
}

static void announce(const struct pushing *p)
{
	printf("recording process %d", p->push.pid);
	if (p->push.n)
		printf("; pushing a profile every %g s", (double)p->push.every_ms / 1000);
	if (p->push.scrape)
		printf("; metrics at http://%s/metrics", scrape_at(p->push.scrape));
	printf("\n");
	fflush(stdout);
}

/* Opens what must be there before the process is touched.  Return: 0, or the exit status after it printed an error. */
static int prepare(struct pushing *p)
{
	struct mp_err err = {0};

	if (p->metrics && scrape_open(p->metrics, &p->push.scrape, &err))
		return complain(&err);
	p->push.stop = ending_signals(0);
	p->last_view = memfd_create("memprof-view", MFD_CLOEXEC);
	if (p->push.stop < 0 || p->last_view < 0) {
		fprintf(stderr, "memprof: cannot begin: %s\n",
			strerror(p->push.stop < 0 ? -p->push.stop : errno));
		return MP_EXIT_FAILURE;
	}
	return push_open(&p->push, &p->at, &err) ? complain(&err) : 0;
}

static int record_and_push(struct pushing *p, const struct recording_options *wanted)
{
	struct recording_options o = *wanted;
	struct push_result r = {0};
	struct own_recorder own;
	struct mp_err err = {0};
	int status, ended, ret;

	o.last_view = p->last_view;
	status = own_recorder_want("attach", p->push.pid, &o, &own);
	if (status)
		return status;
	if (!o.quiet)
		announce(p);
	ret = push_run(p->at, &(struct push_recording){own.pid ? own.over : -1, p->last_view}, &r,
		       &err);
	p->at = NULL;
	/* The own recorder says itself why it ended. */
	if (ret && (ret != -ESHUTDOWN || !own.pid))
		status = complain(&err);
	ended = own_recorder_end(&own);
	print_result(p, &r);
	return status ? status : ended;
}

int pushing_run(struct pushing *p, pid_t pid, const struct recording_options *o)
{
	int status;

	p->push.pid = pid;
	p->push.report = report;
	p->last_view = p->push.stop = -1;
	status = prepare(p);
	if (!status)
		status = record_and_push(p, o);
	push_close(p->at);
	scrape_close(p->push.scrape);
	if (p->last_view >= 0)
		close(p->last_view);
	if (p->push.stop >= 0)
		close(p->push.stop);
	return status;
}

void pushing_free(struct pushing *p)
{
	for (size_t i = 0; i < p->push.n; i++)
		destination_free(&p->push.destination[i]);
}
