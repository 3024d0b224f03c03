/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/filter/selection.h"
#include "model/names/allocator.h"
#include "model/names/names.h"
#include "model/sums/totals.h"

#define TAIL_CHUNKS 2u

/* State of a pass. */
struct pass {
	struct model *m;
	struct history *history;
	struct mpf_reader *reader;
	struct totals totals;
	struct selection *judge; /* set in the first of two passes */
	bool facts;		 /* also process what is not about blocks */
	bool early;		 /* @judge is early */
	bool without_moments;	 /* no time and ordinal of live blocks is needed */
	double done, share;	 /* progress before this pass; its part of the whole */
};

/* ------------------------------------------------------------------ events -- */

static int on_event(void *ctx, const struct mp_event *ev)
{
	struct pass *p = ctx;
	int ret = p->facts ? facts_event(p->m, ev) : 0;

	return ret ? ret : totals_time(&p->totals, ev->time_ns);
}

/* A stack that the file does not have counts as none. */
static struct model_block known_stack(const struct model *m, const struct model_block *b)
{
	struct model_block known = *b;

	if (known.stack >= m->stacks.n)
		known.stack = 0;
	return known;
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	struct pass *p = ctx;
	int ret = p->early ? selection_allocated(p->judge, p->history, b) : 0;

	return ret ? ret : totals_allocated(&p->totals, b);
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	struct pass *p = ctx;

	if (p->judge && !p->early) {
		struct model_block known = known_stack(p->m, b);
		int ret = selection_ended(p->judge, p->history, &known, by, how);

		if (ret)
			return ret;
	}
	return totals_ended(&p->totals, b, by, how);
}

static void on_ahead(void *ctx, uint32_t stack)
{
	const struct model *m = ((struct pass *)ctx)->m;
	const char *group = (const char *)&m->sums.group[stack < m->stacks.n ? stack : 0];

	__builtin_prefetch(group, 1);
	__builtin_prefetch(group + 64, 1);
	__builtin_prefetch(group + 128, 1);
}

/* The end of a page is not recorded, so it is judged at once. */
static int judge_page(const struct pass *p, const struct model_block *page)
{
	struct model_block known = known_stack(p->m, page);

	return p->early ? selection_allocated(p->judge, p->history, &known)
			: selection_live(p->judge, p->history, &known);
}

static int on_faulted(void *ctx, const struct model_block *page)
{
	struct pass *p = ctx;
	int ret = p->judge ? judge_page(p, page) : 0;

	return ret ? ret : totals_faulted(&p->totals, page);
}

/* Blocks that were allocated and freed, and only counted. */
static int on_culled(struct pass *p, const struct mp_culled *c)
{
	struct mp_culled part;
	uint64_t unjudged;

	if (!p->m->source.selection)
		return totals_culled(&p->totals, c);
	part = selection_part(p->m->source.selection, c, &unjudged);
	p->m->doubts.unjudged_blocks += unjudged << c->weight;
	p->m->doubts.unjudged_bytes += (unjudged * c->size) << c->weight;
	return part.blocks ? totals_culled(&p->totals, &part) : 0;
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct pass *p = ctx;
	int ret = p->facts ? facts_item(p->m, it) : 0;

	if (ret)
		return ret;
	switch (it->kind) {
	case MPF_CULLED:
		return on_culled(p, &it->culled);
	case MPF_SECTION:
		return totals_section(&p->totals, &it->section);
	case MPF_STACK_PEAK:
		totals_stack_peak(&p->totals, &it->stack_peak);
		return 0;
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ passes -- */

static int keep_block(void *ctx, const struct model_block *b)
{
	struct model *m = ctx;

	return vec_push(&m->blocks, *b);
}

static int by_addr(const void *a, const void *b)
{
	const struct model_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int keep_blocks(struct pass *p)
{
	struct model *m = p->m;
	int ret = history_live(p->history, keep_block, m);

	if (!ret && m->blocks.n)
		vec_sort(&m->blocks, by_addr);
	return ret;
}

/* Each lost free could have been that of any block that was live then; one loss affects one block.
 */
static int mark_uncertain(void *ctx, const struct model_block *b)
{
	struct model *m = ctx;
	struct group *g = &m->sums.group[b->stack < m->stacks.n ? b->stack : 0];
	uint64_t frees = mp_losses_frees(&m->facts.losses);

	if (b->time_ns > m->facts.losses.last_loss_ns)
		return 0;
	if (g->uncertain_blocks < frees)
		g->uncertain_blocks++;
	if (m->doubts.uncertain_blocks < frees)
		m->doubts.uncertain_blocks++;
	return 0;
}

static bool lost_frees(const struct model *m)
{
	return mp_losses_frees(&m->facts.losses) > 0;
}

static int judge_live(void *ctx, const struct model_block *b)
{
	struct pass *p = ctx;
	struct model_block known = known_stack(p->m, b);

	return selection_live(p->judge, p->history, &known);
}

static int out_of_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* Completes the pass after the last item. */
static int pass_close(struct pass *p, bool blocks)
{
	struct model *m = p->m;
	int ret;

	if (p->facts) {
		m->counts = *history_counts(p->history);
		m->counts.events += m->facts.culled_events;
		if (m->facts.has_finish && m->facts.finish.end_ns > m->facts.end_ns)
			m->facts.end_ns = m->facts.finish.end_ns;
		model_find_allocators(m);
	}
	ret = totals_close(&p->totals);
	if (!ret && p->judge && !p->early)
		ret = history_live(p->history, judge_live, p);
	if (!ret && blocks)
		ret = keep_blocks(p);
	if (!ret && lost_frees(m))
		ret = history_live(p->history, mark_uncertain, m);
	return ret;
}

static void report_progress(void *ctx, double done)
{
	const struct pass *p = ctx;

	p->m->source.progress.tell(p->m->source.progress.ctx, p->done + p->share * done);
}

static int pass_run(struct pass *p, bool blocks, struct mp_err *err)
{
	struct history_sink sink = {.item = on_item,
				    .event = on_event,
				    .allocated = on_allocated,
				    .ahead = on_ahead,
				    .faulted = on_faulted,
				    .ended = on_ended,
				    .ctx = p,
				    .without_moments = p->without_moments};
	int ret;

	totals_init(&p->totals, p->m);
	p->history = history_new(&sink);
	if (!p->history)
		return out_of_memory(err);
	if (p->m->source.selection)
		selection_apply(p->m->source.selection, p->history, true);
	if (p->m->source.progress.tell)
		history_tell(p->history, &(struct history_progress){report_progress, p});
	ret = history_read(p->history, p->reader, NULL, err);
	if (!ret && pass_close(p, blocks))
		ret = out_of_memory(err);
	history_free(p->history);
	return ret;
}

/* Moves the sums so far to those of all allocations; the filtered sums start at zero. */
static int set_aside(struct model *m)
{
	struct group *fresh = calloc(m->stacks.n, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	m->unfiltered.group = m->sums.group;
	m->unfiltered.total = m->sums.total;
	m->sums.group = fresh;
	memset(m->sums.size_class, 0, sizeof(m->sums.size_class));
	vec_for_each (&m->tasks.threads, t)
		*t = (struct model_thread){.tid = t->tid, .name = t->name};
	vec_for_each (&m->tasks.processes, process)
		*process = (struct model_process){.of = process->of};
	m->sums.timeline.n = m->sums.thinned.n = 0;
	m->sums.peak_bytes = m->sums.peak_blocks = m->sums.peak_time_ns = 0;
	m->sums.culled_blocks = m->sums.culled_bytes = m->doubts.uncertain_blocks = 0;
	m->sums.carried_blocks = m->sums.carried_bytes = m->sums.unsized = 0;
	return 0;
}

/* What the last chunks say.  If what comes before is damaged, it is not what is read of the
 * recording. */
struct tail {
	uint64_t end_ns;
	bool lost_frees;
};

/* Was no free lost, and are sums all that is needed? */
static bool no_moments(const struct model *m, bool lost_frees, bool blocks)
{
	return !lost_frees && !blocks && !m->info.sample_interval;
}

static int second_pass(struct model *m, struct selection *s, bool blocks, struct mp_err *err)
{
	struct pass p = {.m = m,
			 .without_moments = no_moments(m, lost_frees(m), blocks),
			 .done = 0.5,
			 .share = 0.5};
	struct mp_info info;
	int ret = selection_close(s, m, err);

	if (ret)
		return ret;
	if (set_aside(m))
		return out_of_memory(err);
	m->source.selection = s;
	ret = mpf_open(m->source.path, &p.reader, &info, err);
	if (!ret)
		ret = pass_run(&p, blocks, err);
	mpf_reader_free(p.reader);
	return ret;
}

static int first_pass(struct model *m, struct selection *judge, bool blocks, const struct tail *t,
		      struct mp_err *err)
{
	struct pass p = {.m = m,
			 .judge = judge,
			 .facts = true,
			 .early = judge && selection_is_early(judge),
			 .share = judge ? 0.5 : 1.0};
	int ret = mpf_open(m->source.path, &m->source.reader, &m->info, err);

	p.reader = m->source.reader;
	p.without_moments = (!judge || p.early) && no_moments(m, t->lost_frees, blocks && !judge);
	if (!ret)
		ret = pass_run(&p, blocks && !judge, err);
	if (!ret && mpf_truncated(m->source.reader)) {
		m->source.truncated = strdup(mpf_truncated(m->source.reader));
		ret = m->source.truncated ? 0 : out_of_memory(err);
	}
	return ret;
}

int model_begin(struct model *m, const char *path, const struct history_progress *progress,
		struct mp_err *err)
{
	memset(m, 0, sizeof(*m));
	m->source.progress = *progress;
	m->source.path = strdup(path);
	m->naming.names = names_new();
	m->sums.group = calloc(1, sizeof(*m->sums.group));
	m->stacks.at = calloc(1, sizeof(*m->stacks.at));
	m->stacks.n = 1;
	return m->source.path && m->naming.names && m->sums.group && m->stacks.at
		   ? 0
		   : out_of_memory(err);
}

/* Which blocks are uncertain is known only by their times. */
static bool misses_moments(const struct tail *t, const struct model *m)
{
	return !t->lost_frees && lost_frees(m);
}

/* Times in percent need the recording's end before its first event is evaluated.  If @t has another
 * one, there is no second pass. */
static int load_filtered(const char *path, const struct model_options *o, const struct tail *t,
			 struct model *m, struct mp_err *err)
{
	struct selection *s;
	int ret = model_begin(m, path, &o->progress, err);

	if (ret)
		return ret;
	ret = mpf_open(path, &m->source.reader, &m->info, err);
	if (ret)
		return ret;
	if (m->info.what == MP_PAGE_FAULTS) {
		ret = filter_of_faults(o->filter, err);
		if (ret)
			return ret;
	}
	if (m->info.processes && o->filter->maps.list.n)
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "from_map: %s is of several processes, whose mappings it does not have", path);
	s = selection_new(o->filter, &m->info, t->end_ns);
	mpf_reader_free(m->source.reader);
	m->source.reader = NULL;
	if (!s)
		return out_of_memory(err);
	ret = first_pass(m, s, o->blocks, t, err);
	if (!ret && t->end_ns == m->facts.end_ns && !misses_moments(t, m))
		ret = second_pass(m, s, o->blocks, err);
	if (m->source.selection != s)
		selection_free(s);
	return ret;
}

/* In files of memprof before 26 November 2026 an event can refer to a block of an earlier chunk
 * (formats/FORMAT.md), so that the last chunks alone cannot be decoded.  What is then missing in @t
 * is found when the whole file is read, as is any damage. */
static int read_tail(const char *path, struct tail *t, struct mp_err *err)
{
	struct mpf_reader *r;
	struct mp_info info;
	struct mpf_item it;
	int ret = mpf_open(path, &r, &info, err);

	*t = (struct tail){0};
	if (ret)
		return ret;
	mpf_skip_to_tail(r, TAIL_CHUNKS);
	while (mpf_next(r, &it, NULL) > 0) {
		uint64_t ns = it.kind == MPF_EVENT    ? it.event.time_ns
			      : it.kind == MPF_FINISH ? it.finish.end_ns
						      : 0;

		if (ns > t->end_ns)
			t->end_ns = ns;
		if (it.kind == MPF_LOSSES)
			t->lost_frees = mp_losses_frees(&it.losses) > 0;
	}
	mpf_reader_free(r);
	return 0;
}

/* Return: 1 if what @t says is not so, 0, or a negative errno with @err filled. */
static int load_recording(const char *path, const struct model_options *o, const struct tail *t,
			  struct model *m, struct mp_err *err)
{
	int ret;

	if (o->filter && !filter_is_empty(o->filter)) {
		ret = load_filtered(path, o, t, m, err);
		return ret ? ret : !m->source.selection;
	}
	ret = model_begin(m, path, &o->progress, err);
	if (!ret)
		ret = first_pass(m, NULL, o->blocks, t, err);
	return ret ? ret : misses_moments(t, m);
}

int model_load(const char *path, const struct model_options *o, struct model *m, struct mp_err *err)
{
	static const struct model_options none;
	struct tail tail;
	int ret = read_tail(path, &tail, err);

	if (ret)
		return ret;
	ret = load_recording(path, o ? o : &none, &tail, m, err);
	if (ret > 0) { /* the last chunks are not those of the whole recording */
		tail = (struct tail){m->facts.end_ns, lost_frees(m)};
		model_free(m);
		ret = load_recording(path, o ? o : &none, &tail, m, err);
	}
	if (ret)
		model_free(m);
	return ret;
}

int model_replay(const struct model *m, const struct history_sink *sink,
		 const struct history_until *until, struct mp_err *err)
{
	struct history *h = history_new(sink);
	struct mpf_reader *r = NULL;
	struct mp_info info;
	int ret = h ? mpf_open(m->source.path, &r, &info, err) : out_of_memory(err);

	if (!ret) {
		if (m->source.selection)
			selection_apply(m->source.selection, h, false);
		history_tell(h, &m->source.progress);
		ret = history_read(h, r, until, err);
	}
	mpf_reader_free(r);
	history_free(h);
	return ret;
}

void model_free(struct model *m)
{
	tasks_free(&m->tasks);
	facts_free(&m->facts);
	naming_free(&m->naming);
	shown_free(&m->shown);
	vec_free(&m->sums.timeline);
	shapes_free(&m->sums.shapes);
	vec_free(&m->blocks);
	vec_free(&m->stacks.pc);
	selection_free(m->source.selection);
	free(m->sums.group);
	free(m->unfiltered.group);
	free(m->stacks.at);
	free(m->source.truncated);
	free(m->source.path);
	mpf_reader_free(m->source.reader);
	memset(m, 0, sizeof(*m));
}
