/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/names.h"

#define POINT_NS   10000000u
#define MAX_STACKS (1u << 28)
#define MAX_POINTS 4096u

/* State of the pass. */
struct replay {
	struct model *m;
	struct history *history;
	uint64_t live_bytes, live_blocks, point_allocs, point_frees, point_ns;
	uint64_t peak_ordinal;
	bool only_peak; /* second pass: stop at the peak and note the groups */
};

static struct model_thread *thread_of(struct model *m, uint32_t tid)
{
	struct model_thread fresh = {.tid = tid};

	vec_for_each (&m->threads, t) {
		if (t->tid == tid)
			return t;
	}
	return vec_push(&m->threads, fresh) ? NULL : &m->threads.at[m->threads.n - 1];
}

static struct group *group_of(struct model *m, uint32_t stack)
{
	return &m->group[stack < m->nstacks ? stack : 0];
}

/* ------------------------------------------------------------------ blocks -- */

static void note_peak(struct replay *r)
{
	struct model *m = r->m;

	if (r->only_peak || r->live_bytes <= m->peak_bytes)
		return;
	m->peak_bytes = r->live_bytes;
	m->peak_blocks = r->live_blocks;
	m->peak_time_ns = m->end_ns;
	r->peak_ordinal = history_counts(r->history)->events;
}

static uint64_t usable_of(const struct model_block *b, const struct estimate *e)
{
	return e->factor > 1 ? (uint64_t)((double)b->usable * e->factor) : b->usable;
}

static void enter(struct replay *r, const struct model_block *b, int sign)
{
	struct group *g = group_of(r->m, b->stack);
	struct estimate e = model_estimate(r->m, b);

	r->live_bytes += (uint64_t)sign * e.bytes;
	r->live_blocks += (uint64_t)sign * e.blocks;
	g->live_bytes += (uint64_t)sign * e.bytes;
	g->live_blocks += (uint64_t)sign * e.blocks;
	g->live_usable += (uint64_t)sign * usable_of(b, &e);
	g->variance_live += sign * e.variance_bytes;
	if (sign > 0)
		note_peak(r);
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	struct replay *r = ctx;
	struct group *g = group_of(r->m, b->stack);
	struct estimate e = model_estimate(r->m, b);
	struct model_thread *t;

	enter(r, b, 1);
	if (r->only_peak)
		return 0;
	if (!g->allocations)
		g->first_ns = b->time_ns;
	g->last_ns = b->time_ns;
	g->allocations += e.blocks;
	g->allocated_bytes += e.bytes;
	g->usable_bytes += usable_of(b, &e);
	g->variance_allocations += e.variance_blocks;
	g->variance_allocated += e.variance_bytes;
	r->point_allocs += e.blocks;
	t = thread_of(r->m, b->tid);
	if (!t)
		return -ENOMEM;
	t->allocations += e.blocks;
	t->allocated_bytes += e.bytes;
	return 0;
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	struct replay *r = ctx;
	struct group *g = group_of(r->m, b->stack);
	struct estimate e = model_estimate(r->m, b);
	struct model_thread *t;

	enter(r, b, -1);
	if (r->only_peak)
		return 0;
	g->frees += e.blocks;
	r->point_frees += e.blocks;
	if (how == BLOCK_LOST)
		return 0; /* nobody knows by which thread */
	if (how == BLOCK_TEMPORARY && !r->m->info.sample_interval) {
		g->temporary++;
		g->temporary_bytes += b->size;
	}
	t = thread_of(r->m, by->tid);
	if (!t)
		return -ENOMEM;
	t->frees += e.blocks;
	return 0;
}

/* ------------------------------------------------------------------ events -- */

static void on_map(struct replay *r, const struct mp_event *ev)
{
	struct group *g = group_of(r->m, ev->stack);

	if (ev->kind == EV_UNMAP)
		r->m->unmaps++;
	if (ev->kind != EV_MAP)
		return;
	if (ev->flags & EV_F_INNER) {
		r->m->inner_maps++;
		return;
	}
	g->maps++;
	g->map_bytes += ev->size;
	r->m->mapped_bytes += ev->size;
}

static int add_point(struct replay *r, uint64_t now)
{
	struct point p = {now, r->live_bytes, r->live_blocks, r->point_allocs, r->point_frees};

	if (now < r->point_ns || r->only_peak)
		return 0;
	r->point_allocs = r->point_frees = 0;
	/* Too many: halve them and go on at half the rate. */
	if (r->m->timeline.n >= MAX_POINTS) {
		size_t keep = 0;

		for (size_t i = 1; i < r->m->timeline.n; i += 2) {
			struct point q = r->m->timeline.at[i];

			q.allocations += r->m->timeline.at[i - 1].allocations;
			q.frees += r->m->timeline.at[i - 1].frees;
			r->m->timeline.at[keep++] = q;
		}
		r->m->timeline.n = keep;
	}
	r->point_ns = now + POINT_NS * (1 + now / (POINT_NS * (uint64_t)MAX_POINTS));
	return vec_push(&r->m->timeline, p);
}

static int on_event(struct replay *r, const struct mp_event *ev)
{
	struct model *m = r->m;

	if (ev->time_ns > m->end_ns)
		m->end_ns = ev->time_ns;
	if (!r->only_peak) {
		if (!thread_of(m, ev->tid))
			return -ENOMEM;
		if (ev->hook < m->hooks.n &&
		    (ev->kind == EV_ALLOC || ev->kind == EV_FREE || ev->kind == EV_REALLOC_BEGIN ||
		     ev->kind == EV_MAP || ev->kind == EV_UNMAP || ev->kind == EV_REMAP_BEGIN ||
		     ev->kind == EV_MALLOPT))
			m->hooks.at[ev->hook].calls++;
		on_map(r, ev);
	}
	return add_point(r, ev->time_ns);
}

/* ------------------------------------------------------------------ items -- */

static int add_stack(struct model *m, const struct mpf_item *it)
{
	struct model_stack s = {m->pc.n, it->stack.n, it->stack.flags};

	if (it->stack.id >= MAX_STACKS)
		return -EINVAL;
	if (it->stack.id >= m->nstacks) {
		uint32_t n = it->stack.id < 512 ? 1024 : it->stack.id * 2;
		struct group *g = reallocarray(m->group, n, sizeof(*g));
		struct model_stack *st;

		if (!g)
			return -ENOMEM;
		m->group = g;
		st = reallocarray(m->stack, n, sizeof(*st));
		if (!st)
			return -ENOMEM;
		m->stack = st;
		memset(g + m->nstacks, 0, (n - m->nstacks) * sizeof(*g));
		memset(st + m->nstacks, 0, (n - m->nstacks) * sizeof(*st));
		m->nstacks = n;
	}
	for (uint32_t i = 0; i < it->stack.n; i++) {
		if (vec_push(&m->pc, it->stack.pc[i]))
			return -ENOMEM;
	}
	m->stack[it->stack.id] = s;
	return 0;
}

static char *keep(const char *s)
{
	return strdup(s ? s : "?");
}

/* Blocks that were allocated and freed, and only counted. */
static int on_culled(struct replay *r, const struct mp_culled *c)
{
	struct group *g = group_of(r->m, c->stack);
	struct model_thread *t = thread_of(r->m, c->tid);

	if (!t)
		return -ENOMEM;
	t->allocations += c->blocks;
	t->allocated_bytes += c->bytes;
	t = thread_of(r->m, c->free_tid);
	if (!t)
		return -ENOMEM;
	t->frees += c->blocks;
	if (!g->allocations)
		g->first_ns = c->time_ns;
	g->last_ns = c->time_ns;
	g->allocations += c->blocks;
	g->frees += c->blocks;
	g->allocated_bytes += c->bytes;
	g->usable_bytes += c->usable;
	g->temporary += c->temporary;
	g->temporary_bytes += c->temporary_bytes;
	if (c->hook < r->m->hooks.n)
		r->m->hooks.at[c->hook].calls += c->blocks;
	if (c->free_hook < r->m->hooks.n)
		r->m->hooks.at[c->free_hook].calls += c->blocks;
	r->m->culled_blocks += c->blocks;
	r->m->culled_bytes += c->bytes;
	r->point_allocs += c->blocks;
	r->point_frees += c->blocks;
	return 0;
}

static int add_mark(struct model *m, uint64_t time_ns, const char *name)
{
	struct mark mark = {time_ns, keep(name)};

	if (mark.name && !vec_push(&m->marks, mark))
		return 0;
	free(mark.name);
	return -ENOMEM;
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct replay *r = ctx;
	struct model *m = r->m;
	struct model_hook h;
	struct mp_module mod;
	struct model_thread *t;
	char *path;

	if (it->kind == MPF_EVENT)
		return on_event(r, &it->event);
	if (r->only_peak)
		return 0;
	switch (it->kind) {
	case MPF_HOOK:
		h = (struct model_hook){keep(it->hook.name), keep(it->hook.module), it->hook.kind,
					0};
		if (!vec_push(&m->hooks, h))
			return 0;
		free(h.name);
		free(h.module);
		return -ENOMEM;
	case MPF_MODULE:
		mod = it->module;
		path = keep(it->module.path);
		mod.path = path;
		if (path && !vec_push(&m->modules, mod))
			return 0;
		free(path);
		return -ENOMEM;
	case MPF_THREAD:
		t = thread_of(m, it->thread.tid);
		if (t && !t->name)
			t->name = keep(it->thread.name);
		return 0;
	case MPF_STACK:
		return add_stack(m, it);
	case MPF_SAMPLE:
		return vec_push(&m->samples, it->sample);
	case MPF_LOSSES:
		m->losses = it->losses;
		return 0;
	case MPF_SYMBOLS:
		return names_add(m->names, it->symbols.pc, it->symbols.at, it->symbols.n);
	case MPF_CULLED:
		return on_culled(r, &it->culled);
	case MPF_MARK:
		return add_mark(m, it->mark.time_ns, it->mark.name);
	case MPF_FINISH:
		m->finish = it->finish;
		m->has_finish = true;
		return 0;
	default:
		return 0;
	}
}

static struct history *history_of(struct replay *r)
{
	struct history_sink sink = {on_item, on_allocated, on_ended, r};

	return history_new(&sink);
}

static int by_addr(const void *a, const void *b)
{
	const struct model_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int keep_block(void *ctx, const struct model_block *b)
{
	struct model *m = ctx;

	return vec_push(&m->blocks, *b);
}

/* What each group held at the peak: the events up to it once more. */
static int peak_pass(const char *path, struct model *m, uint64_t ordinal, struct mp_err *err)
{
	struct group *save = m->group;
	struct model copy = *m;
	struct replay r = {.m = &copy, .only_peak = true};
	struct history_until until = {.events = ordinal};
	struct mpf_reader *reader;
	struct mp_info info;
	int ret;

	copy.group = calloc(m->nstacks, sizeof(*copy.group));
	r.history = history_of(&r);
	ret = copy.group && r.history ? mpf_open(path, &reader, &info, err) : -ENOMEM;
	if (!ret) {
		ret = history_read(r.history, reader, &until, err);
		mpf_reader_free(reader);
	}
	for (uint32_t i = 0; !ret && i < m->nstacks; i++) {
		save[i].peak_bytes = copy.group[i].live_bytes;
		save[i].peak_blocks = copy.group[i].live_blocks;
	}
	free(copy.group);
	history_free(r.history);
	return ret;
}

static void add_up(struct model *m)
{
	for (uint32_t i = 0; i < m->nstacks; i++) {
		const struct group *g = &m->group[i];

		m->total.allocations += g->allocations;
		m->total.frees += g->frees;
		m->total.allocated_bytes += g->allocated_bytes;
		m->total.usable_bytes += g->usable_bytes;
		m->total.temporary += g->temporary;
		m->total.temporary_bytes += g->temporary_bytes;
		m->total.live_blocks += g->live_blocks;
		m->total.live_bytes += g->live_bytes;
		m->total.live_usable += g->live_usable;
		m->total.peak_bytes += g->peak_bytes;
		m->total.peak_blocks += g->peak_blocks;
		m->total.maps += g->maps;
		m->total.map_bytes += g->map_bytes;
		m->total.variance_allocations += g->variance_allocations;
		m->total.variance_allocated += g->variance_allocated;
		m->total.variance_live += g->variance_live;
	}
}

int model_replay(const struct model *m, const struct history_sink *sink,
		 const struct history_until *until, struct mp_err *err)
{
	struct history *h = history_new(sink);
	struct mpf_reader *r = NULL;
	struct mp_info info;
	int ret = h ? mpf_open(m->path, &r, &info, err)
		    : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");

	if (!ret)
		ret = history_read(h, r, until, err);
	mpf_reader_free(r);
	history_free(h);
	return ret;
}

static void take_counts(struct model *m, const struct history_counts *c)
{
	m->events = c->events;
	m->foreign_frees = c->foreign_frees;
	m->housekeeping_frees = c->housekeeping_frees;
	m->foreign_reallocs = c->foreign_reallocs;
	m->mismatches = c->mismatches;
	m->failed_reallocs = c->failed_reallocs;
}

int model_load(const char *path, struct model *m, struct mp_err *err)
{
	struct replay r = {.m = m};
	int ret;

	memset(m, 0, sizeof(*m));
	m->path = strdup(path);
	m->names = names_new();
	m->group = calloc(1, sizeof(*m->group));
	m->stack = calloc(1, sizeof(*m->stack));
	m->nstacks = 1;
	r.history = history_of(&r);
	if (!m->path || !m->names || !m->group || !m->stack || !r.history) {
		history_free(r.history);
		model_free(m);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	ret = mpf_open(path, &m->reader, &m->info, err);
	if (!ret)
		ret = history_read(r.history, m->reader, NULL, err);
	if (!ret && mpf_truncated(m->reader))
		m->truncated = strdup(mpf_truncated(m->reader));
	if (!ret) {
		r.point_ns = 0;
		ret = add_point(&r, m->end_ns);
	}
	if (!ret)
		ret = history_live(r.history, keep_block, m);
	if (!ret) {
		if (m->blocks.n)
			qsort(m->blocks.at, m->blocks.n, sizeof(m->blocks.at[0]), by_addr);
		take_counts(m, history_counts(r.history));
	}
	if (!ret && r.peak_ordinal)
		ret = peak_pass(path, m, r.peak_ordinal, err);
	if (!ret) {
		if (m->has_finish && m->finish.end_ns > m->end_ns)
			m->end_ns = m->finish.end_ns;
		add_up(m);
	}
	history_free(r.history);
	if (ret)
		model_free(m);
	return ret;
}

void model_free(struct model *m)
{
	vec_for_each (&m->hooks, h) {
		free(h->name);
		free(h->module);
	}
	vec_for_each (&m->threads, t)
		free(t->name);
	vec_for_each (&m->modules, mod)
		free((char *)mod->path);
	vec_for_each (&m->marks, mark)
		free(mark->name);
	vec_free(&m->marks);
	vec_free(&m->hooks);
	vec_free(&m->threads);
	vec_free(&m->modules);
	vec_free(&m->samples);
	vec_free(&m->timeline);
	vec_free(&m->blocks);
	vec_free(&m->pc);
	free(m->group);
	free(m->stack);
	free(m->truncated);
	free(m->path);
	names_free(m->names);
	symbols_free(m->symbols);
	mpf_reader_free(m->reader);
	memset(m, 0, sizeof(*m));
}

/* ------------------------------------------------------------------ frames -- */

const struct mp_module *model_module(const struct model *m, uint64_t address)
{
	for (size_t i = m->modules.n; i-- > 0;) {
		if (address >= m->modules.at[i].start && address < m->modules.at[i].end)
			return &m->modules.at[i];
	}
	return NULL;
}

/* A recording whose recorder was killed has no symbols: the files on this machine may. */
static struct symbols *late_symbols(struct model *m)
{
	if (!m->symbols) {
		m->symbols = symbols_new(NULL);
		vec_for_each (&m->modules, mod) {
			if (m->symbols)
				(void)symbols_add_module(m->symbols, mod, NULL);
		}
	}
	return m->symbols;
}

static void fill(struct frame *f, const struct mp_symbol *s, const char *library, uint64_t address)
{
	*f = (struct frame){.function = s->function ? s->function : "?",
			    .raw_function = s->raw_function,
			    .source = s->source,
			    .line = s->line,
			    .column = s->column,
			    .library = library,
			    .address = address,
			    .is_inline = s->is_inline};
}

uint32_t model_frames(struct model *m, uint64_t pc, struct frame *out, uint32_t max)
{
	uint64_t address = pc & SS_PC_EXACT ? pc & ~SS_PC_EXACT : pc - 1;
	const struct mp_module *mod = model_module(m, address);
	const char *library = mod && mod->path && *mod->path ? mod->path : NULL, *slash;
	const struct mp_symbol *sym;
	struct mp_symbol found[64];
	uint32_t n = 0;
	char text[160];

	if (library && (slash = strrchr(library, '/')))
		library = slash + 1;
	sym = names_find(m->names, pc, &n);
	if (!sym && !m->has_finish && late_symbols(m)) {
		n = symbols_find(m->symbols, pc, found, 64);
		if (n && !names_add(m->names, pc, found, n))
			sym = names_find(m->names, pc, &n);
	}
	if (!sym) {
		/* Unknown: the module and the offset in it, kept like a symbol. */
		if (library)
			snprintf(text, sizeof(text), "%.120s+0x%llx", library,
				 (unsigned long long)(address - mod->bias));
		else
			snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
		found[0] = (struct mp_symbol){.function = text};
		if (!names_add(m->names, pc, found, 1))
			sym = names_find(m->names, pc, &n);
	}
	if (!sym || !max) {
		*out = (struct frame){.function = "?", .address = address};
		return 1;
	}
	for (uint32_t i = 0; i < n && i < max; i++)
		fill(&out[i], &sym[i], library, address);
	return n < max ? n : max;
}
