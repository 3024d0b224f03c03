/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include <stdio.h>
#include "lib/deadline.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "top/cell.h"
#include "top/feed.h"
#include "top/fit.h"
#include "top/screen.h"
#include "top/state.h"

#define BEHIND_NS   1000000000u /* the recorder's lag that is worth a line */
#define SILENT_NS   2000000000u /* without an answer */
#define TEXT	    160
#define ROOMY	    12 /* rows of a screen on which each doubt has a line of its own */
#define DOUBTS	    4
#define WIDE_NUMBER 40

static uint64_t resident(const struct model *m)
{
	return m->facts.samples.n ? m->facts.samples.at[m->facts.samples.n - 1].rss : 0;
}

static void states(const struct top *t, const struct model *m, char text[TEXT])
{
	const struct feed_state *fs = feed_state(t->feed);
	int n = 0;

	*text = 0;
	if (*t->ended)
		n += snprintf(text + n, (size_t)(TEXT - n), "ENDED  ");
	if (fs->paused)
		n += snprintf(text + n, (size_t)(TEXT - n), "PAUSED  ");
	if (t->frozen)
		n += snprintf(text + n, (size_t)(TEXT - n), "FROZEN  ");
	if (m->info.sample_interval)
		n += snprintf(text + n, (size_t)(TEXT - n), "SAMPLED per %s  ",
			      human(m->info.sample_interval));
	else if (fs->least)
		n += snprintf(text + n, (size_t)(TEXT - n), "SAMPLED to %s/s  ",
			      thousands(feed_kept(fs->least)));
	if (n)
		text[n - 2] = 0;
}

static void draw_first(const struct top *t, const struct model *m)
{
	const struct group *sum = &m->sums.total;
	const bool estimated = sum->variance_live > 0 || m->info.sample_interval;
	char line[FIT_SIZE], name[FIT_SIZE], process[FIT_SIZE + 32], live[CELL], time[CELL];
	char of_blocks[TEXT], only[TEXT], rss[TEXT] = "", words[TEXT];
	uint64_t bytes = resident(m);

	cell_bytes(sum->live_bytes, estimated, WIDE_NUMBER, live);
	cell_time(m->facts.end_ns, time);
	snprintf(process, sizeof(process), "%s (%d)", fit_middle(t->name, 24, name), t->o->pid);
	snprintf(of_blocks, sizeof(of_blocks), "live %s in %s%s", live, estimated ? "~" : "",
		 counted(sum->live_blocks, "block"));
	snprintf(only, sizeof(only), "live %s", live);
	if (bytes)
		snprintf(rss, sizeof(rss), "resident %s", human(bytes));
	states(t, m, words);
	struct fit_part parts[] = {
	    {"memprof top", "top", 5}, {process, NULL, 0},   {words, NULL, 0},
	    {time, NULL, 4},	       {of_blocks, only, 2}, {rss, NULL, 3},
	};
	screen_put(0, 0, screen_width(), SCREEN_TITLE,
		   fit_parts(parts, sizeof(parts) / sizeof(parts[0]), screen_width(), line));
}

static void draw_second(const struct top *t, const struct model *m)
{
	const struct past_moment *first = past_first(&t->past);
	const double span = past_span(&t->past);
	const bool estimated = top_rates_estimated(t);
	char line[FIT_SIZE], number[CELL], rate[TEXT], growth[TEXT], peak[TEXT] = "",
								     events[TEXT] = "";
	double allocations = 0, grown = 0;

	if (first && span > 0) {
		allocations = (double)(m->sums.total.allocations - first->total.allocations) / span;
		grown = ((double)m->sums.total.live_bytes - (double)first->total.live_bytes) / span;
	}
	snprintf(rate, sizeof(rate), "allocations %s/s",
		 cell_rate(allocations, estimated, WIDE_NUMBER, number));
	snprintf(growth, sizeof(growth), "growth %s/s",
		 cell_change(grown, estimated, WIDE_NUMBER, number));
	if (m->sums.peak_bytes)
		snprintf(peak, sizeof(peak), "peak %s",
			 cell_bytes(m->sums.peak_bytes,
				    m->info.sample_interval || m->facts.losses.thinned, WIDE_NUMBER,
				    number));
	if (m->counts.events)
		snprintf(events, sizeof(events), "events %s", thousands(m->counts.events));
	struct fit_part parts[] = {
	    {rate, NULL, 0}, {growth, NULL, 1}, {peak, NULL, 2}, {events, NULL, 3}};
	screen_put(1, 0, screen_width(), SCREEN_PLAIN,
		   fit_parts(parts, sizeof(parts) / sizeof(parts[0]), screen_width(), line));
}

/* Writes what is not certain, a line each.  Return: the number of lines. */
static uint32_t doubts(const struct top *t, const struct model *m, char line[DOUBTS][TEXT])
{
	const struct feed_state *fs = feed_state(t->feed);
	const uint64_t lost = mp_losses_events(&m->facts.losses);
	const uint64_t frees = mp_losses_frees(&m->facts.losses);
	uint32_t n = 0;

	if (lost && frees)
		snprintf(line[n++], TEXT, "lost %s: up to %s of the live blocks may be free",
			 counted(lost, "event"), thousands(frees));
	else if (lost)
		snprintf(line[n++], TEXT, "lost %s: all sums are too low", counted(lost, "event"));
	if (m->info.sample_interval)
		snprintf(line[n++], TEXT, "sampled (~): one point per %s",
			 human(m->info.sample_interval));
	else if (m->facts.losses.thinned && m->info.overhead_ppm)
		snprintf(line[n++], TEXT, "sampled (~) for a cost of at most %s",
			 human_part(m->info.overhead_ppm));
	else if (m->facts.losses.thinned)
		snprintf(line[n++], TEXT, "estimated (~): %s thinned out%s",
			 counted(m->facts.losses.thinned, "allocation"),
			 fs->least ? "; s changes that" : "");
	if (t->asked_ns && !t->frozen && mono_ns() - t->asked_ns > SILENT_NS)
		snprintf(line[n++], TEXT, "the recorder has not answered for %.0f s",
			 (double)(mono_ns() - t->asked_ns) / 1e9);
	else if (fs->behind_ns > BEHIND_NS && !*t->ended)
		snprintf(line[n++], TEXT, "the recorder is %.1f s behind: the numbers are that old",
			 (double)fs->behind_ns / 1e9);
	return n;
}

uint32_t draw_head(const struct top *t)
{
	const struct model *m = feed_model(t->feed);
	char line[DOUBTS][TEXT], all[DOUBTS * (TEXT + 2)] = "";
	uint32_t n = doubts(t, m, line), row = 2;
	size_t used = 0;

	draw_first(t, m);
	draw_second(t, m);
	if (screen_height() >= ROOMY) {
		for (uint32_t i = 0; i < n; i++)
			screen_put(row++, 0, screen_width(), SCREEN_WARNING, line[i]);
		return row;
	}
	for (uint32_t i = 0; i < n; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? "; " : "",
					 line[i]);
	if (n)
		screen_put(row++, 0, screen_width(), SCREEN_WARNING, all);
	return row;
}
