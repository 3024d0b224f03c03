/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/json_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "formats/session.h"
#include "model/model.h"

static void write_frame(yajl_gen g, const struct frame *f, bool folded)
{
	yajl_gen_map_open(g);
	json_address(g, f->address);
	json_text(g, "function", f->function);
	if (f->raw_function)
		json_text(g, "raw_function", f->raw_function);
	if (f->library)
		json_text(g, "library", f->library);
	if (f->source) {
		json_text(g, "source", f->source);
		json_number(g, "line", f->line);
		json_number(g, "column", f->column);
	}
	json_boolean(g, "is_inline", f->is_inline);
	if (folded)
		json_boolean(g, "folded", true);
	yajl_gen_map_close(g);
}

/* Which frames are shown, from the outermost one on. */
struct folding {
	struct shown_stack s;
	uint32_t run, next; /* entries left; frames left of the present one */
};

static void folding_begin(struct folding *f, struct model *m, uint32_t id)
{
	*f = (struct folding){0};
	if (!shown_stack(m, id, &f->s))
		f->run = f->s.n;
}

/* Return: whether the next frame is left out: of a run only the outermost frame is shown. */
static bool folding_next(struct folding *f)
{
	bool folded = f->next > 0;

	if (folded)
		f->next--;
	else if (f->run)
		f->next = f->s.at[--f->run].frames - 1;
	return folded;
}

void json_frames(yajl_gen g, struct model *m, uint32_t id)
{
	const struct model_stack *s = &m->stacks.at[id < m->stacks.n ? id : 0];
	struct folding folding;

	folding_begin(&folding, m, id);

	yajl_gen_array_open(g);
	for (uint32_t i = s->n; i-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(m, m->stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0)
			write_frame(g, &f[n], folding_next(&folding));
	}
	yajl_gen_array_close(g);
}

/* Writes which entry of the list is the first frame of the user's own code. */
static void write_site(yajl_gen g, struct model *m, uint32_t id)
{
	struct shown_stack s;

	json_name(g, "user_frame");
	if (!shown_every(m, id, &s) && s.site < s.n)
		yajl_gen_integer(g, s.n - 1 - s.site);
	else
		yajl_gen_null(g);
}

void json_backtrace(yajl_gen g, struct model *m, uint32_t id)
{
	const struct model_stack *s = &m->stacks.at[id < m->stacks.n ? id : 0];

	json_name(g, "backtrace");
	json_frames(g, m, id);
	write_site(g, m, id);
	json_boolean(g, "complete", s->flags & SS_STACK_COMPLETE);
	json_boolean(g, "by_frame_pointers", s->flags & SS_STACK_BY_FP);
}

int json_stacks_init(struct json_stacks *s, const struct model *m)
{
	s->n = m->stacks.n;
	s->used = calloc(s->n + 1u, sizeof(*s->used));
	return s->used ? 0 : -ENOMEM;
}

void json_stacks_free(struct json_stacks *s)
{
	free(s->used);
	s->used = NULL;
}

void json_stacks_refer(struct json_stacks *s, yajl_gen g, uint32_t id)
{
	id = id < s->n ? id : 0;
	s->used[id] = true;
	json_number(g, "backtrace_id", id);
}

void json_stacks_write(const struct json_stacks *s, yajl_gen g, struct model *m)
{
	json_name(g, "stacks");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < s->n; id++) {
		if (!s->used[id])
			continue;
		yajl_gen_map_open(g);
		json_number(g, "backtrace_id", id);
		json_backtrace(g, m, id);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

void json_moment(yajl_gen g, const struct model *m, const char *key, uint64_t ns)
{
	char name[64];

	json_timeval(g, key, m->info.start_unix_ns + ns);
	snprintf(name, sizeof(name), "%s_relative", key);
	json_timeval(g, name, ns);
	snprintf(name, sizeof(name), "%s_relative_p", key);
	json_name(g, name);
	if (m->facts.end_ns)
		yajl_gen_double(g, (double)ns / (double)m->facts.end_ns);
	else
		yajl_gen_null(g);
}
