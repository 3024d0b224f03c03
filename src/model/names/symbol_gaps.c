/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/symbol_gaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/session.h"
#include "lib/intern.h"
#include "model/model.h"
#include "model/names/frames.h"
#include "model/names/names.h"
#include "model/names/runtime.h"

#define NO_FILE UINT32_MAX

/* A file, with the stacks that were counted last for it. */
struct file {
	struct symbol_gap gap;
	uint32_t counted_function, counted_line;
};

/* A different address. */
struct known {
	uint32_t file; /* index, or NO_FILE */
	bool no_function, no_line;
};

struct search {
	const struct model *m;
	struct intern *seen;
	VEC(struct known) known; /* [id - 1] */
	VEC(struct file) files;
};

static bool same_file(const struct mp_module *a, const struct mp_module *b)
{
	return a == b || (!strcmp(a->path, b->path) && a->build_id_len == b->build_id_len &&
			  !memcmp(a->build_id, b->build_id, a->build_id_len));
}

/* Return: its index, or NO_FILE when out of memory. */
static uint32_t file_of(struct search *s, const struct mp_module *module)
{
	struct file f = {.gap.module = module, .counted_function = UINT32_MAX};
	struct frame frame = {.function = ""};

	f.counted_line = UINT32_MAX;
	for (size_t i = 0; i < s->files.n; i++) {
		if (same_file(s->files.at[i].gap.module, module))
			return (uint32_t)i;
	}
	f.gap.library = frame.library = model_library(s->m, module);
	f.gap.own = runtime_of(&frame, false) == RUNTIME_NONE;
	return vec_push(&s->files, f) ? NO_FILE : (uint32_t)s->files.n - 1;
}

/* model_frames() stores the library and an offset for an address without a symbol. */
static bool has_function(const struct mp_symbol *sym, uint32_t n)
{
	return sym && n && sym[n - 1].function &&
	       (sym[n - 1].raw_function || !strstr(sym[n - 1].function, "+0x"));
}

/* The C library's start files are never compiled with -g. */
static bool is_start_file(const struct mp_symbol *sym, uint32_t n)
{
	return sym && n && sym[n - 1].function && !strcmp(sym[n - 1].function, "_start");
}

static bool has_line(const struct mp_symbol *sym, uint32_t n)
{
	return sym && n && sym[0].source && sym[0].line;
}

static int add_address(struct search *s, uint64_t pc)
{
	uint64_t address = ss_pc_instruction(pc);
	const struct mp_module *module = model_module(s->m, address);
	const struct mp_symbol *sym;
	struct known k = {.file = NO_FILE};
	uint32_t n = 0;

	if (module && module->path && module->path[0] == '/') {
		sym = names_find(s->m->naming.names, pc, &n);
		k.file = file_of(s, module);
		if (k.file == NO_FILE)
			return -ENOMEM;
		k.no_function = !has_function(sym, n);
		k.no_line = !has_line(sym, n) && !is_start_file(sym, n);
		s->files.at[k.file].gap.addresses++;
		s->files.at[k.file].gap.no_function += k.no_function;
		s->files.at[k.file].gap.no_line += k.no_line;
	}
	return vec_push(&s->known, k);
}

/* Adds the bytes of stack @id once to each file. */
static void count_frame(struct search *s, const struct known *k, uint32_t id, uint64_t bytes)
{
	struct file *f = k->file == NO_FILE ? NULL : &s->files.at[k->file];

	if (f && k->no_function && f->counted_function != id) {
		f->counted_function = id;
		f->gap.bytes_no_function += bytes;
	}
	if (f && k->no_line && f->counted_line != id) {
		f->counted_line = id;
		f->gap.bytes_no_line += bytes;
	}
}

static int add_stack(struct search *s, uint32_t id, uint64_t bytes)
{
	const struct model_stack *stack = &s->m->stacks.at[id];

	for (uint32_t i = 0; i < stack->n; i++) {
		uint64_t pc = s->m->stacks.pc.at[stack->first + i];
		bool fresh;
		uint32_t known = intern_pair(s->seen, pc, 0, &fresh);

		if (!known || (fresh && add_address(s, pc)) || known > s->known.n)
			return -ENOMEM;
		count_frame(s, &s->known.at[known - 1], id, bytes);
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct symbol_gap *x = a, *y = b;

	if (x->bytes_no_function != y->bytes_no_function)
		return x->bytes_no_function > y->bytes_no_function ? -1 : 1;
	if (x->bytes_no_line != y->bytes_no_line)
		return x->bytes_no_line > y->bytes_no_line ? -1 : 1;
	return strcmp(x->module->path, y->module->path);
}

static int take_gaps(const struct search *s, struct symbol_gaps *g)
{
	vec_for_each (&s->files, f) {
		if ((f->gap.no_function || f->gap.no_line) && vec_push(&g->list, f->gap))
			return -ENOMEM;
	}
	vec_sort(&g->list, by_bytes);
	return 0;
}

int symbol_gaps_find(const struct model *m, struct symbol_gaps *g)
{
	struct search s = {.m = m, .seen = intern_new()};
	int ret = s.seen ? 0 : -ENOMEM;

	memset(g, 0, sizeof(*g));
	for (uint32_t id = 0; m->facts.has_finish && id < m->stacks.n && !ret; id++) {
		const struct group *sum = &m->sums.group[id];

		if (!sum->allocations && !sum->maps)
			continue;
		g->bytes += sum->allocated_bytes;
		ret = add_stack(&s, id, sum->allocated_bytes);
	}
	if (!ret)
		ret = take_gaps(&s, g);
	if (ret)
		vec_free(&g->list);
	intern_free(s.seen);
	vec_free(&s.known);
	vec_free(&s.files);
	return ret;
}
