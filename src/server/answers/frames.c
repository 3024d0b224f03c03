/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/lists/groups.h"
#include "formats/session.h"
#include "lib/intern.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/names/cxx_name.h"

/* How many allocations have an address in their stacks. */
struct frame_counts {
	struct intern *addresses;
	VEC(uint64_t) allocations; /* [id of the address] */
};

/* ------------------------------------------------------------------ counting -- */

static int count_stack(struct frame_counts *c, const struct model *m, uint32_t id)
{
	const struct model_stack *s = &m->stacks.at[id];
	uint64_t allocations = groups_all(m, id)->allocations;

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t address = ss_pc_instruction(m->stacks.pc.at[s->first + i]);
		uint32_t number = intern_pair(c->addresses, address, 0, NULL);

		if (!number || vec_reach(&c->allocations, number))
			return -ENOMEM;
		c->allocations.at[number] += allocations;
	}
	return 0;
}

int frames_begin(struct answer *a, struct mp_err *err)
{
	struct frame_counts *c;
	int ret = 0;

	if (*a->counts)
		return 0;
	c = calloc(1, sizeof(*c));
	if (c)
		c->addresses = intern_new();
	if (!c || !c->addresses)
		ret = -ENOMEM;
	for (uint32_t id = 0; id < a->m->stacks.n && !ret; id++)
		ret = count_stack(c, a->m, id);
	if (ret) {
		frame_counts_free(c);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	*a->counts = c;
	return 0;
}

void frame_counts_free(struct frame_counts *c)
{
	if (!c)
		return;
	intern_free(c->addresses);
	vec_free(&c->allocations);
	free(c);
}

static uint64_t count_of(const struct frame_counts *c, uint64_t address)
{
	uint32_t id = intern_pair(c->addresses, address, 0, NULL);

	return id < c->allocations.n ? c->allocations.at[id] : 0;
}

/* ------------------------------------------------------------------ writing -- */

static void write_function(const struct answer *a, yajl_gen g, const char *name)
{
	char *shorter =
	    call_true(a->call, "strip_template_args") ? cxx_without_arguments(name) : NULL;

	json_text(g, "function", shorter ? shorter : name);
	free(shorter);
}

void frames_one(struct answer *a, yajl_gen g, const struct frame *f)
{
	yajl_gen_map_open(g);
	json_address(g, f->address);
	json_number(g, "count", count_of(*a->counts, f->address));
	if (f->library)
		json_text(g, "library", f->library);
	if (f->raw_function && strcmp(f->function, f->raw_function) != 0)
		write_function(a, g, f->function);
	if (f->raw_function)
		json_text(g, "raw_function", f->raw_function);
	if (f->source)
		json_text(g, "source", f->source);
	if (f->source && f->line)
		json_number(g, "line", f->line);
	if (f->source && f->column)
		json_number(g, "column", f->column);
	json_boolean(g, "is_inline", f->is_inline);
	yajl_gen_map_close(g);
}

void frames_array(struct answer *a, yajl_gen g, uint32_t id)
{
	const struct model_stack *s = &a->m->stacks.at[id < a->m->stacks.n ? id : 0];

	yajl_gen_array_open(g);
	for (uint32_t i = s->n; i-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(a->m, a->m->stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0)
			frames_one(a, g, &f[n]);
	}
	yajl_gen_array_close(g);
}

void frames_backtrace(struct answer *a, yajl_gen g, uint32_t id)
{
	json_number(g, "backtrace_id", id < a->m->stacks.n ? id : 0);
	json_name(g, "backtrace");
	frames_array(a, g, id);
}
