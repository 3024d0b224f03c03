/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/stack_ends.h"

#include <stdio.h>
#include <string.h>
#include "formats/file.h"
#include "formats/session.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/model.h"

#define SHOWN 8u

static const struct {
	const char *key, *text;
} reason[] = {
    [STACK_END_NO_STACK] = {"no_stack", "no stack could be recorded"},
    [STACK_END_NO_TABLE] = {"no_unwind_information", "code without unwind information"},
    [STACK_END_MADE_CODE] = {"generated_code", "code that the program generated"},
    [STACK_END_NO_MODULE] = {"no_module", "no code is known at its address"},
    [STACK_END_BAD_FRAME] = {"bad_frame", "a frame that does not make sense"},
    [STACK_END_TOO_DEEP] = {"too_deep", "more frames than are recorded"},
    [STACK_END_NOT_COPIED] = {"not_copied", "more stack than was copied (--stack-size)"},
};

static enum stack_end_reason reason_of(const struct model_stack *s, const struct mp_module *module)
{
	if (!s->n)
		return STACK_END_NO_STACK;
	if (s->flags & SS_STACK_TOO_DEEP)
		return STACK_END_TOO_DEEP;
	if (s->flags & SS_STACK_TRUNCATED)
		return STACK_END_NOT_COPIED;
	if (!(s->flags & SS_STACK_NO_TABLE))
		return STACK_END_BAD_FRAME;
	if (!module)
		return STACK_END_NO_MODULE;
	return module->path && *module->path ? STACK_END_NO_TABLE : STACK_END_MADE_CODE;
}

static struct stack_end end_of(const struct model *m, const struct model_stack *s)
{
	uint64_t pc = s->n ? m->stacks.pc.at[s->first + s->n - 1] : 0;
	const struct mp_module *module = s->n ? model_module(m, ss_pc_instruction(pc)) : NULL;
	struct stack_end e = {.reason = reason_of(s, module), .stacks = 1};

	if (module && module->path && *module->path)
		e.library = model_library(m, module);
	return e;
}

static bool same_end(const struct stack_end *a, const struct stack_end *b)
{
	return a->reason == b->reason &&
	       (a->library == b->library ||
		(a->library && b->library && !strcmp(a->library, b->library)));
}

static int add_end(struct stack_ends *e, const struct stack_end *one)
{
	vec_for_each (&e->list, k) {
		if (!same_end(k, one))
			continue;
		k->stacks += one->stacks;
		k->count += one->count;
		return 0;
	}
	return vec_push(&e->list, *one);
}

static int by_count(const void *a, const void *b)
{
	const struct stack_end *x = a, *y = b;

	return x->count > y->count ? -1 : x->count < y->count;
}

int stack_ends_find(const struct model *m, struct stack_ends *e)
{
	memset(e, 0, sizeof(*e));
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		const struct model_stack *s = &m->stacks.at[id];
		uint64_t count = m->sums.group[id].allocations + m->sums.group[id].maps;
		struct stack_end one;

		if (!count)
			continue;
		if (s->flags & SS_STACK_BY_FP) {
			e->fp_stacks++;
			e->fp_count += count;
		}
		if (s->flags & SS_STACK_COMPLETE)
			continue;
		one = end_of(m, s);
		one.count = count;
		if (add_end(e, &one)) {
			vec_free(&e->list);
			return -ENOMEM;
		}
	}
	vec_sort(&e->list, by_count);
	return 0;
}

void stack_ends_text(const struct model *m, const char *what, FILE *out)
{
	struct stack_ends e;

	if (stack_ends_find(m, &e))
		return;
	if (e.fp_stacks)
		fprintf(out, "            %s of %s: callers found by frame pointers\n",
			counted(e.fp_stacks, "stack"), counted(e.fp_count, what));
	for (size_t i = 0; i < e.list.n && i < SHOWN; i++) {
		const struct stack_end *k = &e.list.at[i];

		fprintf(out, "            %s of %s: ends in %s, %s\n", counted(k->stacks, "stack"),
			counted(k->count, what), k->library ? printable(k->library) : "no file",
			reason[k->reason].text);
	}
	vec_free(&e.list);
}

void stack_ends_json(yajl_gen g, const struct model *m)
{
	struct stack_ends e;

	if (stack_ends_find(m, &e))
		memset(&e, 0, sizeof(e));
	json_name(g, "frame_pointer_stacks");
	yajl_gen_map_open(g);
	json_number(g, "stacks", e.fp_stacks);
	json_number(g, "count", e.fp_count);
	yajl_gen_map_close(g);
	json_name(g, "incomplete_stacks");
	yajl_gen_array_open(g);
	vec_for_each (&e.list, k) {
		yajl_gen_map_open(g);
		json_text(g, "library", k->library);
		json_text(g, "reason", reason[k->reason].key);
		json_number(g, "stacks", k->stacks);
		json_number(g, "count", k->count);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	vec_free(&e.list);
}
