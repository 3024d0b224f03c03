/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/speedscope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/session.h"
#include "lib/intern.h"
#include "lib/json_gen.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/stack_order.h"
#include "model/sums/weight.h"

#define NCOSTS 5

struct speedscope {
	struct model *m;
	yajl_gen g;
	struct intern *texts, *frames;
	VEC(uint32_t) of_frame; /* [shown_frame.number]: its id + 1; 0: not known */
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

static void add_frame(struct speedscope *s, const struct shown_frame *f)
{
	while (s->of_frame.n <= f->number && !s->failed)
		s->failed = vec_push(&s->of_frame, 0) != 0;
	if (!s->failed && !s->of_frame.at[f->number])
		s->of_frame.at[f->number] = frame_id(s, &f->at) + 1;
}

static void add_stack(struct speedscope *s, uint32_t id)
{
	struct shown_stack stack;

	s->failed |= shown_stack(s->m, id, &stack) != 0;
	for (uint32_t i = stack.n; i-- > shown_first(s->m, &stack);)
		add_frame(s, &stack.at[i]);
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
		add_stack(s, id);
	}
	yajl_gen_array_close(s->g);
	yajl_gen_map_close(s->g);
}

static void write_sample(struct speedscope *s, uint32_t id, uint32_t no_stack, uint32_t incomplete)
{
	const struct model_stack *st = &s->m->stacks.at[id];
	struct shown_stack stack;

	s->failed |= shown_stack(s->m, id, &stack) != 0;
	yajl_gen_array_open(s->g);
	if (!st->n)
		yajl_gen_integer(s->g, no_stack);
	else if (!(st->flags & SS_STACK_COMPLETE))
		yajl_gen_integer(s->g, incomplete);
	for (uint32_t i = stack.n; i-- > shown_first(s->m, &stack);) {
		uint32_t number = stack.at[i].number;

		if (number < s->of_frame.n && s->of_frame.at[number])
			yajl_gen_integer(s->g, s->of_frame.at[number] - 1);
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
		 model_is_estimated(s->m) ? " (estimated)" : "");
	json_text(s->g, "name", name);
	json_text(s->g, "unit", cost_is_bytes(cost) ? "bytes" : "none");
	json_name(s->g, "samples");
	yajl_gen_array_open(s->g);
	for (uint32_t i = 0; i < n; i++)
		write_sample(s, ids[i], no_stack, incomplete);
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
	if (s.g && s.texts && s.frames)
		ret = write_file(&s, shown);
	if (s.g)
		yajl_gen_free(s.g);
	intern_free(s.texts);
	intern_free(s.frames);
	vec_free(&s.of_frame);
	return ret ? ret : ferror(out) ? -EIO : 0;
}
