/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include "attach/procfs.h"
#include "control/requests.h"
#include "formats/file.h"
#include "lib/deadline.h"
#include "model/group.h"
#include "model/model.h"
#include "top/feed.h"

#define NS  1e9
#define PPM 1e6

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void metrics_look(struct metrics *m, const struct model *model, const struct feed_state *s)
{
	const struct group *sum = &model->sums.total;
	struct proc_memory memory;
	struct ss_control c;
	struct ss_journal j;

	m->looked_ns = mono_ns();
	m->start_unix_ns = model->info.start_unix_ns;
	m->length_ns = model->facts.end_ns;
	m->behind_ns = s->behind_ns;
	m->paused = s->paused;
	m->live_bytes = sum->live_bytes;
	m->live_blocks = sum->live_blocks;
	m->live_error = (uint64_t)group_error(sum->variance_live);
	m->allocations = sum->allocations;
	m->allocated_bytes = sum->allocated_bytes;
	m->frees = sum->frees;
	m->lost_events = mp_losses_events(&model->facts.losses);
	m->lost_frees = mp_losses_frees(&model->facts.losses);
	m->thinned = model->facts.losses.thinned;
	m->sample_interval = model->info.sample_interval;
	m->overhead_ppm = model->info.overhead_ppm;
	if (model->facts.samples.n)
		m->resident = model->facts.samples.at[model->facts.samples.n - 1].rss;
	if (!session_peek(m->pid, &c, &j) || !recorder_lives(&j))
		return;
	m->cost_ppm = c.seen_cost_ppm;
	m->recorder_cpu_ns = cpu_ns(j.recorder_pid);
	if (!proc_memory_read(j.recorder_pid, &memory))
		m->recorder_resident = memory.rss;
}

/* -------------------------------------------------------------------- text -- */

/* The text of a label: backslash, quote and newline are escaped. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
	}
}

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP memprof_%s %s\n# TYPE memprof_%s %s\n", name, help, name, type);
}

static void begin_sample(const struct metrics *m, FILE *out, const char *name)
{
	fprintf(out, "memprof_%s{pid=\"%d\",service=\"", name, m->pid);
	put_text(out, m->service);
	putc('"', out);
}

static void put_number(const struct metrics *m, FILE *out, const char *name, const char *type,
		       const char *help, uint64_t value)
{
	put_head(out, name, type, help);
	begin_sample(m, out, name);
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void put_real(const struct metrics *m, FILE *out, const char *name, const char *type,
		     const char *help, double value)
{
	put_head(out, name, type, help);
	begin_sample(m, out, name);
	fprintf(out, "} %.9f\n", value);
}

static void put_heap(const struct metrics *m, FILE *out)
{
	put_number(m, out, "live_bytes", "gauge", "Live bytes since the recording began.",
		   m->live_bytes);
	put_number(m, out, "live_blocks", "gauge", "Live blocks.", m->live_blocks);
	put_number(m, out, "live_error_bytes", "gauge",
		   "Standard error of the live bytes; 0: they are exact.", m->live_error);
	put_number(m, out, "allocations_total", "counter", "Allocations.", m->allocations);
	put_number(m, out, "allocated_bytes_total", "counter", "Allocated bytes.",
		   m->allocated_bytes);
	put_number(m, out, "frees_total", "counter", "Frees.", m->frees);
	if (m->resident)
		put_number(m, out, "process_resident_bytes", "gauge",
			   "Resident memory of the process, without memprof's.", m->resident);
}

static void put_truth(const struct metrics *m, FILE *out)
{
	put_number(m, out, "lost_events_total", "counter",
		   "Events that were lost; sums are too low by them.", m->lost_events);
	put_number(m, out, "lost_frees_total", "counter",
		   "Lost events that can have freed a block; so many live blocks may be free.",
		   m->lost_frees);
	put_number(m, out, "thinned_allocations_total", "counter",
		   "Allocations that were not recorded, for which others count more.", m->thinned);
	put_number(m, out, "sample_interval_bytes", "gauge",
		   "Mean bytes a sample (--sample); 0: none.", m->sample_interval);
	put_real(m, out, "behind_seconds", "gauge", "The sums are as old as that at a look.",
		 (double)m->behind_ns / NS);
	put_real(m, out, "look_age_seconds", "gauge",
		 "Time since the look at the recorder that these values are of.",
		 m->looked_ns ? (double)(mono_ns() - m->looked_ns) / NS : 0);
	put_number(m, out, "paused", "gauge", "1: new blocks are left out (memprof pause).",
		   m->paused);
}

static void put_cost(const struct metrics *m, FILE *out)
{
	put_real(m, out, "overhead_limit_ratio", "gauge",
		 "Limit of the cost (--overhead), a part of the process's CPU time; 0: none.",
		 (double)m->overhead_ppm / PPM);
	put_real(
	    m, out, "overhead_ratio", "gauge",
	    "Cost of the last seconds, a part of the process's CPU time; 0 without --overhead.",
	    (double)m->cost_ppm / PPM);
	put_real(m, out, "recorder_cpu_seconds_total", "counter", "CPU time of the recorder.",
		 (double)m->recorder_cpu_ns / NS);
	put_number(m, out, "recorder_resident_bytes", "gauge", "Resident memory of the recorder.",
		   m->recorder_resident);
	put_real(m, out, "recording_start_seconds", "gauge",
		 "When the recording began, since 1970.", (double)m->start_unix_ns / NS);
	put_real(m, out, "recording_length_seconds", "gauge", "Length of the recording.",
		 (double)m->length_ns / NS);
}

static void put_stores(const struct metrics *m, FILE *out, const char *name, const char *type,
		       const char *help, uint64_t (*value)(const struct outbox_counts *c))
{
	put_head(out, name, type, help);
	for (size_t i = 0; i < m->stores; i++) {
		begin_sample(m, out, name);
		fputs(",store=\"", out);
		put_text(out, m->store[i].url);
		fprintf(out, "\"} %" PRIu64 "\n", value(&m->store[i].counts));
	}
}

static uint64_t sent(const struct outbox_counts *c)
{
	return c->sent;
}

static uint64_t rejected(const struct outbox_counts *c)
{
	return c->rejected;
}

static uint64_t dropped(const struct outbox_counts *c)
{
	return c->dropped;
}

static uint64_t waiting(const struct outbox_counts *c)
{
	return c->waiting;
}

static void put_pushes(const struct metrics *m, FILE *out)
{
	if (!m->stores)
		return;
	put_number(m, out, "push_windows_total", "counter", "Profiles made (--push).", m->windows);
	put_stores(m, out, "push_sent_total", "counter", "Profiles that the store took.", sent);
	put_stores(m, out, "push_rejected_total", "counter",
		   "Profiles that the store did not want.", rejected);
	put_stores(m, out, "push_lost_total", "counter",
		   "Profiles dropped because too many waited, or because the disk was full.",
		   dropped);
	put_stores(m, out, "push_waiting", "gauge", "Profiles that wait to be sent.", waiting);
}

int metrics_write(const struct metrics *m, FILE *out)
{
	put_head(out, "info", "gauge", "1; which memprof this is.");
	begin_sample(m, out, "info");
	fprintf(out, ",version=\"%s\"} 1\n", MEMPROF_VERSION);
	put_heap(m, out);
	put_truth(m, out);
	put_cost(m, out);
	put_pushes(m, out);
	return ferror(out) ? -EIO : 0;
}
