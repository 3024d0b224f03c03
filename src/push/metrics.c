/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <time.h>
#include "attach/proc/procfs.h"
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

void metrics_recorder(struct metrics_of_all *m, pid_t pid)
{
	struct proc_memory memory;

	m->recorder_cpu_ns = cpu_ns(pid);
	if (!proc_memory_read(pid, &memory))
		m->recorder_resident = memory.rss;
}

void metrics_look(struct metrics *m, const struct model *model, const struct feed_state *s)
{
	const struct group *sum = &model->sums.total;
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
	if (session_peek(m->pid, &c, &j))
		m->cost_ppm = c.seen_cost_ppm;
}

/* -------------------------------------------------------------------- text -- */

enum unit { COUNT, SECONDS, PARTS /* millionths */ };

static const struct entry {
	const char *name, *type, *help;
	size_t offset; /* in struct metrics, of uint64_t */
	enum unit unit;
} of_recordings[] = {
    {"live_bytes", "gauge", "Live bytes since the recording began.",
     offsetof(struct metrics, live_bytes), COUNT},
    {"live_blocks", "gauge", "Live blocks.", offsetof(struct metrics, live_blocks), COUNT},
    {"live_error_bytes", "gauge", "Standard error of the live bytes; 0: they are exact.",
     offsetof(struct metrics, live_error), COUNT},
    {"allocations_total", "counter", "Allocations.", offsetof(struct metrics, allocations), COUNT},
    {"allocated_bytes_total", "counter", "Allocated bytes.",
     offsetof(struct metrics, allocated_bytes), COUNT},
    {"frees_total", "counter", "Frees.", offsetof(struct metrics, frees), COUNT},
    {"lost_events_total", "counter", "Events that were lost; sums are too low by them.",
     offsetof(struct metrics, lost_events), COUNT},
    {"lost_frees_total", "counter",
     "Lost events that can have freed a block; so many live blocks may be free.",
     offsetof(struct metrics, lost_frees), COUNT},
    {"thinned_allocations_total", "counter",
     "Allocations that were not recorded, for which others count more.",
     offsetof(struct metrics, thinned), COUNT},
    {"sample_interval_bytes", "gauge", "Mean bytes a sample (--sample); 0: none.",
     offsetof(struct metrics, sample_interval), COUNT},
    {"behind_seconds", "gauge", "The sums are as old as that at a look.",
     offsetof(struct metrics, behind_ns), SECONDS},
    {"paused", "gauge", "1: new blocks are left out (memprof pause).",
     offsetof(struct metrics, paused), COUNT},
    {"overhead_limit_ratio", "gauge",
     "Limit of the cost (--overhead), a part of the process's CPU time; 0: none.",
     offsetof(struct metrics, overhead_ppm), PARTS},
    {"overhead_ratio", "gauge",
     "Cost of the last seconds, a part of the process's CPU time; 0 without --overhead.",
     offsetof(struct metrics, cost_ppm), PARTS},
    {"recording_start_seconds", "gauge", "When the recording began, since 1970.",
     offsetof(struct metrics, start_unix_ns), SECONDS},
    {"recording_length_seconds", "gauge", "Length of the recording.",
     offsetof(struct metrics, length_ns), SECONDS},
};

static const struct entry of_pushes[] = {
    {"push_windows_total", "counter", "Profiles made (--push).", offsetof(struct metrics, windows),
     COUNT},
    {"push_windows_lost_total", "counter",
     "Profiles not made, because the recorder did not end in time.",
     offsetof(struct metrics, windows_lost), COUNT},
};

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

static void put_value(FILE *out, uint64_t value, enum unit unit)
{
	if (unit == COUNT)
		fprintf(out, "%" PRIu64 "\n", value);
	else
		fprintf(out, "%.9f\n", (double)value / (unit == SECONDS ? NS : PPM));
}

static void put_sample(FILE *out, const char *name, const struct metrics *m, uint64_t value,
		       enum unit unit)
{
	fprintf(out, "memprof_%s{pid=\"%d\",service=\"", name, m->pid);
	put_text(out, m->service);
	fputs("\"} ", out);
	put_value(out, value, unit);
}

static void put_entries(const struct metrics_of_all *all, FILE *out, const struct entry *e,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_head(out, e[i].name, e[i].type, e[i].help);
		vec_for_each (&all->process, m)
			put_sample(out, e[i].name, m,
				   *(const uint64_t *)((const char *)m + e[i].offset), e[i].unit);
	}
}

static void put_processes(const struct metrics_of_all *all, FILE *out)
{
	const uint64_t now = mono_ns();

	put_entries(all, out, of_recordings, sizeof(of_recordings) / sizeof(of_recordings[0]));
	if (all->stores)
		put_entries(all, out, of_pushes, sizeof(of_pushes) / sizeof(of_pushes[0]));
	put_head(out, "look_age_seconds", "gauge",
		 "Time since the look at the recorder that the values are of.");
	vec_for_each (&all->process, m) {
		if (m->looked_ns)
			put_sample(out, "look_age_seconds", m, now - m->looked_ns, SECONDS);
	}
	put_head(out, "process_resident_bytes", "gauge",
		 "Resident memory of the process, without memprof's.");
	vec_for_each (&all->process, m) {
		if (m->resident)
			put_sample(out, "process_resident_bytes", m, m->resident, COUNT);
	}
}

static void put_one(FILE *out, const char *name, const char *type, const char *help, uint64_t value,
		    enum unit unit)
{
	put_head(out, name, type, help);
	fprintf(out, "memprof_%s ", name);
	put_value(out, value, unit);
}

static void put_stores(const struct metrics_of_all *m, FILE *out, const char *name,
		       const char *type, const char *help,
		       uint64_t (*value)(const struct outbox_counts *c))
{
	if (!m->stores)
		return;
	put_head(out, name, type, help);
	for (size_t i = 0; i < m->stores; i++) {
		fprintf(out, "memprof_%s{store=\"", name);
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

int metrics_write(const struct metrics_of_all *m, FILE *out)
{
	put_head(out, "info", "gauge", "1; which memprof this is.");
	fprintf(out, "memprof_info{version=\"%s\"} 1\n", MEMPROF_VERSION);
	put_one(out, "recorded_processes", "gauge", "Processes that are recorded.", m->process.n,
		COUNT);
	put_head(out, "left_out_processes", "gauge", "Processes that are not recorded.");
	vec_for_each (&m->left_out, l) {
		fputs("memprof_left_out_processes{why=\"", out);
		put_text(out, l->why);
		fprintf(out, "\"} %" PRIu64 "\n", l->n);
	}
	put_one(out, "recorder_cpu_seconds_total", "counter", "CPU time of the recorder.",
		m->recorder_cpu_ns, SECONDS);
	put_one(out, "recorder_resident_bytes", "gauge", "Resident memory of the recorder.",
		m->recorder_resident, COUNT);
	put_processes(m, out);
	put_stores(m, out, "push_sent_total", "counter", "Profiles that the store took.", sent);
	put_stores(m, out, "push_rejected_total", "counter",
		   "Profiles that the store did not want.", rejected);
	put_stores(m, out, "push_lost_total", "counter",
		   "Profiles dropped because too many waited, or because the disk was full.",
		   dropped);
	put_stores(m, out, "push_waiting", "gauge", "Profiles that wait to be sent.", waiting);
	return ferror(out) ? -EIO : 0;
}
