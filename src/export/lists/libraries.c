/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/libraries.h"

#include <stdlib.h>
#include <string.h>
#include "formats/session.h"
#include "model/model.h"

#define NONE UINT32_MAX

struct finder {
	const struct model *m;
	struct libraries *l;
	uint32_t *of_module; /* [module]: index, or NONE */
	uint32_t unknown;
};

static uint32_t add_library(struct libraries *l, const char *name)
{
	struct library fresh = {.name = name};

	for (size_t i = 0; i < l->at.n; i++) {
		const char *have = l->at.at[i].name;

		if (have == name || (have && name && !strcmp(have, name)))
			return (uint32_t)i;
	}
	return vec_push(&l->at, fresh) ? NONE : (uint32_t)l->at.n - 1;
}

/* Several mappings of a file are one library. */
static int add_modules(struct finder *f)
{
	f->of_module = calloc(f->m->facts.modules.n + 1, sizeof(*f->of_module));
	f->unknown = add_library(f->l, NULL);
	if (!f->of_module || f->unknown == NONE)
		return -ENOMEM;
	for (size_t i = 0; i < f->m->facts.modules.n; i++) {
		const char *name = model_library(f->m, &f->m->facts.modules.at[i]);

		f->of_module[i] = name ? add_library(f->l, name) : f->unknown;
		if (f->of_module[i] == NONE)
			return -ENOMEM;
	}
	return 0;
}

static uint32_t library_of(const struct finder *f, uint64_t pc)
{
	uint64_t address = ss_pc_instruction(pc);
	const struct mp_module *mod = model_module(f->m, address);

	return mod ? f->of_module[mod - f->m->facts.modules.at] : f->unknown;
}

static void add_stack(struct finder *f, uint32_t id)
{
	const struct model_stack *s = &f->m->stacks.at[id];
	uint32_t allocator = s->n ? library_of(f, f->m->stacks.pc.at[s->first]) : f->unknown;
	uint32_t caller = allocator;

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = library_of(f, f->m->stacks.pc.at[s->first + i]);
		struct library *lib = &f->l->at.at[at];

		if (caller == allocator)
			caller = at;
		if (lib->seen == id)
			continue;
		lib->seen = id;
		group_add(&lib->anywhere, &f->m->sums.group[id]);
	}
	group_add(&f->l->at.at[caller].direct, &f->m->sums.group[id]);
	if (!s->n)
		group_add(&f->l->at.at[caller].anywhere, &f->m->sums.group[id]);
}

static int dearest(const void *a, const void *b)
{
	const struct library *x = a, *y = b;

	if (x->direct.allocated_bytes != y->direct.allocated_bytes)
		return x->direct.allocated_bytes < y->direct.allocated_bytes ? 1 : -1;
	if (x->anywhere.allocated_bytes != y->anywhere.allocated_bytes)
		return x->anywhere.allocated_bytes < y->anywhere.allocated_bytes ? 1 : -1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

int libraries_sum(const struct model *m, struct libraries *l)
{
	struct finder f = {.m = m, .l = l};
	int ret = add_modules(&f);

	vec_for_each (&l->at, lib)
		lib->seen = NONE;
	for (uint32_t id = 0; !ret && id < m->stacks.n; id++) {
		if (m->sums.group[id].allocations)
			add_stack(&f, id);
	}
	if (!ret)
		vec_sort(&l->at, dearest);
	free(f.of_module);
	return ret;
}
