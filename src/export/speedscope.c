/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/speedscope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/json_gen.h"
#include "formats/session.h"
#include "lib/intern.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/stack_order.h"

#define MAX_INLINED 64
#define NCOSTS	    5

struct speedscope {
	struct model *m;
	yajl_gen g;
	struct intern *texts, *frames, *known; /* known: address -> its first frame */
	VEC(uint32_t) of_pc;		       /* [id in known - 1]: its frames in chain */
	VEC(uint32_t) chain; /* number of frames, then their ids, outermost first */
	bool failed;
};

static uint32_t text_id(struct speedscope *s, const char *text)
{
	return text ? intern_text(s->texts, text, NULL) : 0;
}

/* Frames are written when they are first found: their list precedes the profiles. */
static uint32_t frame_id(struct speedscope *s, const struct frame *f)
{
	bool fresh;
	uint32_t id =
	    intern_pair(s->frames, (uint64_t)text_id(s, f->function) << 32 | text_id(s, f->library),
			(uint64_t)text_id(s, f->source) << 32 | f->line, &fresh);

	if (fresh) {
		yajl_gen_map_open(s->g);
		json_text(s->g, "name", f->function);
		if (f->source) {
			json_text(s->g, "file", f->source);
			json_number(s->g, "line", f->line);
			if (f->column)
				json_number(s->g, "col", f->column);
		} else if (f->library) {
			json_text(s->g, "file", f->library);
		}
		yajl_gen_map_close(s->g);
	}
	if (!id)
		s->failed = true;
	return id - 1;
}

static void add_chain(struct speedscope *s, const struct frame *f, uint32_t n)
{
	if (vec_push(&s->of_pc, (uint32_t)s->chain.n) || vec_push(&s->chain, n))
		s->failed = true;
	while (n-- > 0) {
		if (vec_push(&s->chain, frame_id(s, &f[n])))
			s->failed = true;
	}
}

static void add_pc(struct speedscope *s, uint64_t pc)
{
	struct frame f[MAX_INLINED];
	uint32_t n;
	bool fresh;

	if (!intern_pair(s->known, pc, 0, &fresh))
		s->failed = true;
	if (fresh && !s->failed) {
		n = model_frames(s->m, pc, f, MAX_INLINED);
		add_chain(s, f, n);
	}
}

static uint32_t add_marker(struct speedscope *s, const char *text)
{
	struct frame f = {.function = text};

	return frame_id(s, &f);
}

static void write_frames(struct speedscope *s, uint32_t *no_stack, uint32_t *incomplete)
{
	struct model *m = s->m;

	json_name(s->g, "shared");
	yajl_gen_map_open(s->g);
	json_name(s->g, "frames");
	yajl_gen_array_open(s->g);
	*no_stack = add_marker(s, "(no stack)");
	*incomplete = add_marker(s, "(incomplete)");
	for (uint32_t id = 0; id < m->stacks.n && !s->failed; id++) {
		const struct group *g = &m->sums.group[id];

		if (!g->allocations && !g->live_blocks)
			continue;
		for (uint32_t i = 0; i < m->stacks.at[id].n; i++)
			add_pc(s, m->stacks.pc.at[m->stacks.at[id].first + i]);
	}
	yajl_gen_array_close(s->g);
	yajl_gen_map_close(s->g);
}

static void write_sample(struct speedscope *s, const struct model_stack *st, uint32_t no_stack,
			 uint32_t incomplete)
{
	yajl_gen_array_open(s->g);
	if (!st->n)
		yajl_gen_integer(s->g, no_stack);
	else if (!(st->flags & SS_STACK_COMPLETE))
		yajl_gen_integer(s->g, incomplete);
	for (uint32_t i = st->n; i-- > 0;) {
		uint32_t id = intern_pair(s->known, s->m->stacks.pc.at[st->first + i], 0, NULL);
		const uint32_t *c =
		    id && id <= s->of_pc.n ? &s->chain.at[s->of_pc.at[id - 1]] : NULL;

		for (uint32_t k = 1; c && k <= c[0]; k++)
			yajl_gen_integer(s->g, c[k]);
	}
	yajl_gen_array_close(s->g);
}

static int write_profile(struct speedscope *s, enum cost cost, uint32_t no_stack,
			 uint32_t incomplete)
{
	uint32_t n, *ids = stack_order(s->m, cost, &n);
	uint64_t sum = 0;
	char name[64];

	if (!ids)
		return -ENOMEM;
	yajl_gen_map_open(s->g);
	json_text(s->g, "type", "sampled");
	snprintf(name, sizeof(name), "%s%s", cost_text(cost),
		 s->m->info.sample_interval ? " (estimated)" : "");
	json_text(s->g, "name", name);
	json_text(s->g, "unit", cost_is_bytes(cost) ? "bytes" : "none");
	json_name(s->g, "samples");
	yajl_gen_array_open(s->g);
	for (uint32_t i = 0; i < n; i++)
		write_sample(s, &s->m->stacks.at[ids[i]], no_stack, incomplete);
	yajl_gen_array_close(s->g);
	json_name(s->g, "weights");
	yajl_gen_array_open(s->g);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t weight = group_cost(&s->m->sums.group[ids[i]], cost);

		yajl_gen_integer(s->g, (long long)weight);
		sum += weight;
	}
	yajl_gen_array_close(s->g);
	json_number(s->g, "startValue", 0);
	json_number(s->g, "endValue", sum);
	yajl_gen_map_close(s->g);
	free(ids);
	return 0;
}

static int write_file(struct speedscope *s, enum cost shown)
{
	uint32_t no_stack, incomplete;
	char exporter[64];
	int ret = 0;

	snprintf(exporter, sizeof(exporter), "memprof %s", s->m->info.memprof_version);
	yajl_gen_map_open(s->g);
	json_text(s->g, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(s->g, "name", s->m->info.cmdline);
	json_text(s->g, "exporter", exporter);
	json_number(s->g, "activeProfileIndex", shown);
	write_frames(s, &no_stack, &incomplete);
	json_name(s->g, "profiles");
	yajl_gen_array_open(s->g);
	for (int cost = 0; cost < NCOSTS && !ret && !s->failed; cost++)
		ret = write_profile(s, (enum cost)cost, no_stack, incomplete);
	yajl_gen_array_close(s->g);
	yajl_gen_map_close(s->g);
	return s->failed ? -ENOMEM : ret;
}

int speedscope_write(struct model *m, enum cost shown, FILE *out)
{
	struct speedscope s = {.m = m, .g = json_begin(out, false)};
	int ret = -ENOMEM;

	s.texts = intern_new();
	s.frames = intern_new();
	s.known = intern_new();
	if (s.g && s.texts && s.frames && s.known)
		ret = write_file(&s, shown);
	if (s.g)
		yajl_gen_free(s.g);
	intern_free(s.texts);
	intern_free(s.frames);
	intern_free(s.known);
	vec_free(&s.of_pc);
	vec_free(&s.chain);
	return ret ? ret : ferror(out) ? -EIO : 0;
}
