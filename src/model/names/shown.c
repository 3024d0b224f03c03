/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/shown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/intern.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/names/cxx_name.h"
#include "model/names/runtime.h"

struct known_pc {
	size_t first;
	uint32_t n;
};

struct shown_cache {
	struct intern *pcs;
	VEC(struct known_pc) pc; /* [id in pcs - 1] */
	struct shown_list known;
	VEC(struct shown_frame) stack; /* the latest one */
};

static struct shown_cache *cache_new(void)
{
	struct shown_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->pcs = intern_new();
	if (c->pcs)
		return c;
	free(c);
	return NULL;
}

void shown_free(struct shown *s)
{
	struct shown_cache *c = s->cache;

	if (!c)
		return;
	intern_free(c->pcs);
	vec_free(&c->pc);
	shown_list_free(&c->known);
	vec_free(&c->stack);
	free(c);
	s->cache = NULL;
}

/* ------------------------------------------------------------------ addresses -- */

/* Return: the shortened name, to be freed by the caller; NULL if there is none, or when out of
 * memory. */
static char *short_name(const struct frame *f)
{
	char *name = NULL;

	if (!frame_is_jit(f) && f->raw_function && strcmp(f->raw_function, f->function) != 0)
		name = cxx_short(f->function);
	if (name && *name)
		return name;
	free(name);
	return NULL;
}

static struct shown_frame entry_of(const struct frame *f, bool in_program)
{
	enum runtime r = runtime_of(f, in_program);

	return (struct shown_frame){.at = *f,
				    .full = f->function,
				    .frames = 1,
				    .runtimes = r == RUNTIME_NONE ? 0 : 1u << r};
}

int shown_list_add(struct shown_list *l, const struct frame *f, bool full, bool in_program)
{
	struct shown_frame s = entry_of(f, in_program);
	char *name = full ? NULL : short_name(f);

	if (name) {
		if (vec_push(&l->names, name)) {
			free(name);
			return -ENOMEM;
		}
		s.at.function = name;
	}
	s.number = (uint32_t)l->at.n;
	return vec_push(&l->at, s);
}

void shown_list_free(struct shown_list *l)
{
	vec_for_each (&l->names, name)
		free(*name);
	vec_free(&l->names);
	vec_free(&l->at);
}

static int add_frame(struct model *m, const struct frame *f, bool in_program)
{
	return shown_list_add(&m->shown.cache->known, f, m->shown.full, in_program);
}

static int add_pc(struct model *m, uint64_t pc)
{
	struct shown_cache *c = m->shown.cache;
	struct frame f[MAX_INLINED];
	uint32_t n = model_frames(m, pc, f, MAX_INLINED);
	const struct mp_module *mod = model_module(m, f[0].address);
	bool in_program =
	    mod && mod->path && m->info.executable && !strcmp(mod->path, m->info.executable);
	struct known_pc k = {c->known.at.n, n};

	for (uint32_t i = 0; i < n; i++) {
		if (add_frame(m, &f[i], in_program))
			return -ENOMEM;
	}
	return vec_push(&c->pc, k);
}

static const struct known_pc *known_pc(struct model *m, uint64_t pc)
{
	struct shown_cache *c = m->shown.cache;
	bool fresh;
	uint32_t id = intern_pair(c->pcs, pc, 0, &fresh);

	if (!id || (fresh && add_pc(m, pc)) || id > c->pc.n)
		return NULL;
	return &c->pc.at[id - 1];
}

/* ------------------------------------------------------------------ stacks -- */

static int add_frames(struct shown_cache *c, const struct known_pc *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		if (vec_push(&c->stack, c->known.at.at[k->first + i]))
			return -ENOMEM;
	}
	return 0;
}

/* In a stack without a function of a script, the frames of engines are the user's own code. */
static void judge_engines(struct shown_frame *f, size_t n)
{
	uint32_t engines = 0;

	for (size_t i = 0; i < n; i++) {
		if (frame_is_jit(&f[i].at) && !f[i].runtimes)
			return;
	}
	for (int r = 0; r < RUNTIMES; r++)
		engines |= runtime_is_engine((enum runtime)r) ? 1u << r : 0;
	for (size_t i = 0; i < n; i++)
		f[i].runtimes &= ~engines;
}

static uint32_t find_site(const struct shown_frame *f, size_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!f[i].runtimes)
			return i;
	}
	return (uint32_t)n;
}

int shown_every(struct model *m, uint32_t id, struct shown_stack *s)
{
	const struct model_stack *of = &m->stacks.at[id < m->stacks.n ? id : 0];
	struct shown_cache *c;

	*s = (struct shown_stack){0};
	if (!m->shown.cache)
		m->shown.cache = cache_new();
	c = m->shown.cache;
	if (!c)
		return -ENOMEM;
	c->stack.n = 0;
	for (uint32_t i = 0; i < of->n; i++) {
		const struct known_pc *k = known_pc(m, m->stacks.pc.at[of->first + i]);

		if (!k || add_frames(c, k))
			return -ENOMEM;
	}
	judge_engines(c->stack.at, c->stack.n);
	s->at = c->stack.at;
	s->n = (uint32_t)c->stack.n;
	s->site = find_site(s->at, s->n);
	return 0;
}

/* Folds runs in place.  Return: the number of entries. */
static uint32_t fold(struct shown_frame *f, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct shown_frame *last = kept ? &f[kept - 1] : NULL;

		if (last && last->runtimes && f[i].runtimes) {
			uint32_t frames = last->frames + 1, runtimes = last->runtimes;

			*last = f[i];
			last->frames = frames;
			last->runtimes |= runtimes;
		} else {
			f[kept++] = f[i];
		}
	}
	return kept;
}

struct shown_stack shown_list_every(const struct shown_list *l)
{
	uint32_t n = (uint32_t)l->at.n;

	judge_engines(l->at.at, n);
	return (struct shown_stack){.at = l->at.at, .n = n, .site = find_site(l->at.at, n)};
}

struct shown_stack shown_list_fold(struct shown_list *l)
{
	struct shown_stack s = shown_list_every(l);

	if (s.site < s.n) {
		s.n = fold(l->at.at, s.n);
		s.site = find_site(s.at, s.n);
		l->at.n = s.n;
	}
	return s;
}

int shown_stack(struct model *m, uint32_t id, struct shown_stack *s)
{
	int ret = shown_every(m, id, s);

	if (ret || m->shown.full || s->site == s->n)
		return ret;
	s->n = fold(m->shown.cache->stack.at, s->n);
	s->site = find_site(s->at, s->n);
	return 0;
}

uint32_t shown_first(const struct model *m, const struct shown_stack *s)
{
	return m->shown.full || s->site == s->n ? 0 : s->site;
}

uint32_t shown_count(const struct shown_stack *s, uint32_t from, uint32_t to)
{
	uint32_t sum = 0;

	for (uint32_t i = from; i < to; i++)
		sum += s->at[i].frames;
	return sum;
}

const char *shown_runtimes(uint32_t runtimes, char buf[SHOWN_RUNTIMES])
{
	size_t n = 0;

	*buf = 0;
	/* The library that the user's code called comes first. */
	for (int r = RUNTIMES - 1; r > RUNTIME_NONE; r--) {
		bool last = !(runtimes >> 1 & ((1u << (r - 1)) - 1));

		if (runtimes & 1u << r && n < SHOWN_RUNTIMES)
			n += (size_t)snprintf(buf + n, SHOWN_RUNTIMES - n, "%s%s",
					      !n     ? ""
					      : last ? " and "
						     : ", ",
					      runtime_text((enum runtime)r));
	}
	return buf;
}
