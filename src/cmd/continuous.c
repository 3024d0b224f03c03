/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/continuous.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/cgroups.h"
#include "cmd/cmd.h"
#include "cmd/options/options.h"
#include "formats/file.h"
#include "lib/ending_signals.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "push/scrape.h"
#include "push/stores.h"

#define LAST_SEND_MS 5000 /* how long the servers may need at the end */

/* ------------------------------------------------------------------------- notices -- */

/* Called by any thread. */
static void report(void *ctx, const struct destination *d, const char *failed)
{
	(void)ctx;
	if (failed)
		fprintf(stderr, "memprof: cannot push to %s: %s\n", printable(d->url), failed);
	else
		fprintf(stderr, "memprof: pushing to %s again\n", printable(d->url));
}

struct shown {
	const struct continuous_options *c;
	bool quiet;
	bool one; /* a single process was named: its end is the end of the command */
};

static void on_found(void *ctx, const struct processes *p)
{
	const struct shown *s = ctx;
	bool first = true;

	if (!s->c->fleet.filter.all && s->c->fleet.filter.name.n &&
	    !processes_count(p, LEFT_OUT_NOT) && !processes_count(p, LEFT_OUT_TRACED))
		fprintf(stderr, "memprof: no process has this name yet; waiting for one\n");
	if (s->quiet || !s->c->fleet.filter.all)
		return;
	printf("found %s; left out:", counted(processes_count(p, LEFT_OUT_NOT), "process"));
	for (int why = LEFT_OUT_NOT + 1; why < LEFT_OUT_REASONS; why++) {
		const uint32_t n = processes_count(p, why);

		if (!n)
			continue;
		printf("%s %s %s", first ? "" : ",", thousands(n), left_out_text(why));
		first = false;
	}
	printf("%s\n", first ? " none" : "");
	fflush(stdout);
}

static void on_begun(void *ctx, pid_t pid, const char *name, bool by_other)
{
	const struct shown *s = ctx;

	if (s->quiet)
		return;
	printf("recording process %d (%s)%s\n", pid, printable(name),
	       by_other ? ", which another memprof records" : "");
	fflush(stdout);
}

static void on_message(void *ctx, pid_t pid, const char *name, const char *text)
{
	char process[32];

	(void)ctx;
	snprintf(process, sizeof(process), "process %d", pid);
	/* Many messages say themselves of which process they are. */
	if (strstr(text, process))
		fprintf(stderr, "memprof: %s\n", text);
	else
		fprintf(stderr, "memprof: process %d (%s): %s\n", pid, printable(name), text);
}

static void on_ended(void *ctx, const char *name, const struct recorders_message *m)
{
	const struct shown *s = ctx;

	if (m->text[0])
		on_message(ctx, m->pid, name, m->text);
	else if (!s->quiet && m->reason == MP_END_EXITED)
		printf("process %d (%s) has ended\n", m->pid, printable(name));
	fflush(stdout);
}

/* ----------------------------------------------------------------------------- run -- */

static void announce(const struct continuous_options *c)
{
	const char *separator = "";

	if (c->stores.n) {
		printf("pushing a profile of each process every %g s",
		       (double)c->push.every_ms / 1000);
		separator = "; ";
	}
	if (c->fleet.scrape)
		printf("%smetrics at http://%s/metrics", separator, scrape_at(c->fleet.scrape));
	if (c->stores.n || c->fleet.scrape)
		printf("\n");
	fflush(stdout);
}

static void print_result(const struct continuous_options *c, const struct fleet_result *r,
			 const struct outbox_counts *sum)
{
	const uint64_t lost =
	    sum->dropped + r->windows_lost * c->stores.n + (c->stores.spool ? 0 : sum->waiting);

	if (c->stores.n)
		printf("pushed %s\n", counted(r->windows, "profile"));
	if (sum->rejected)
		fprintf(stderr, "memprof: the stores rejected %s\n",
			counted(sum->rejected, "profile"));
	if (lost)
		fprintf(stderr, "memprof: %s lost\n", counted(lost, "profile"));
	if (c->stores.spool && sum->waiting)
		fprintf(stderr,
			"memprof: waiting in %s: %s; the next --push to the same URL sends them\n",
			printable(c->stores.spool), counted(sum->waiting, "profile"));
}

/* Opens what must be there before a process is touched.  Return: 0, or a negative errno with @err. */
static int prepare(struct continuous_options *c, struct mp_err *err)
{
	/* Before there are threads. */
	const int view = cgroups_enter_machine();
	int ret = 0;

	if (view && c->fleet.filter.cgroup.n)
		return mp_fail(err, MP_EXIT_PERMISSION, view,
			       "--cgroup: memprof has a cgroup namespace of its own, and may not "
			       "enter that of process 1 (%s): "
			       "it needs CAP_SYS_ADMIN and CAP_SYS_PTRACE",
			       strerror(-view));
	ret = c->metrics ? scrape_open(c->metrics, &c->fleet.scrape, err) : 0;
	c->fleet.stop = ending_signals(0);
	if (!ret && c->fleet.stop < 0)
		ret = mp_fail(err, MP_EXIT_FAILURE, c->fleet.stop, "cannot wait for signals: %s",
			      strerror(-c->fleet.stop));
	return ret ? ret : stores_open(&c->stores, &c->push.stores, err);
}

int continuous_run(struct continuous_options *c, const struct recording_options *o)
{
	struct shown shown = {.c = c, .quiet = o->quiet};
	struct fleet_result result = {0};
	struct recorders recorders = {.fd = -1};
	struct outbox_counts sum;
	struct mp_err err = {0};
	int ret, status = 0;

	c->stores.report = report;
	c->fleet.notices = (struct fleet_notices){on_found, on_begun, on_message, on_ended, &shown};
	ret = prepare(c, &err);
	/* Not earlier than what can be refused, and before there are threads. */
	ret = ret ? ret : recorders_start(o, &recorders, &err);
	ret = ret ? ret : stores_start(c->push.stores, &err);
	if (!ret) {
		if (!o->quiet)
			announce(c);
		ret = fleet_run(&c->fleet, &recorders, &result, &err);
	}
	if (ret)
		status = complain(&err);
	(void)recorders_stop(&recorders);
	sum = stores_close(c->push.stores, LAST_SEND_MS);
	if (!ret)
		print_result(c, &result, &sum);
	scrape_close(c->fleet.scrape);
	if (c->fleet.stop >= 0)
		close(c->fleet.stop);
	/* With --all, a process that cannot be recorded is not an error. */
	return status ? status : c->fleet.filter.all ? MP_EXIT_OK : result.status;
}
