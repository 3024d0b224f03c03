/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/allocations.h"

#include <errno.h>
#include <string.h>
#include "export/lists/collect.h"
#include "export/json_stack.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "model/allocator.h"
#include "model/filter.h"

#define FRAMES 3

const char *const allocation_keys[] = {"timestamp", "address", "size", "lifetime", NULL};

bool allocations_sort_key(const char *text, uint32_t *sort)
{
	for (uint32_t i = 0; i < ALLOCATION_KEYS; i++) {
		if (!strcmp(text, allocation_keys[i])) {
			*sort = i;
			return true;
		}
	}
	return false;
}

const char *allocations_sort_name(uint32_t sort)
{
	return sort < ALLOCATION_KEYS ? allocation_keys[sort] : NULL;
}

/* ------------------------------------------------------------------ JSON -- */

struct writer {
	yajl_gen g;
	struct model *m;
	struct json_stacks stacks;
};

/* @stack: 0: not recorded. */
static void write_end(struct writer *w, const char *key, uint64_t ns, uint64_t tid, uint32_t stack)
{
	yajl_gen g = w->g;

	json_name(g, key);
	yajl_gen_map_open(g);
	json_moment(g, w->m, "timestamp", ns);
	json_number(g, "thread", tid);
	if (stack)
		json_stacks_refer(&w->stacks, g, stack);
	yajl_gen_map_close(g);
}

static void write_chain(struct writer *w, const struct allocation *a, const struct chain_end *c)
{
	yajl_gen g = w->g;

	json_number(g, "position_in_chain", a->position);
	json_number(g, "chain_length", c ? c->length : 1);
	if (c ? !c->ended : !a->ended)
		return;
	if (c && a->position + 1 < c->length)
		write_end(w, "chain_deallocation", c->end_ns, c->end_tid, 0);
	json_timeval(g, "chain_lifetime",
		     c ? c->end_ns - c->first_ns : a->end_ns - a->block.time_ns);
}

void allocation_kind_json(yajl_gen g, enum allocator kind)
{
	json_text(g, "allocator", allocator_text(kind));
	json_boolean(g, "is_mmaped", kind == ALLOCATOR_MMAPPED);
	json_boolean(g, "is_jemalloc", kind == ALLOCATOR_JEMALLOC);
	json_boolean(g, "in_main_arena", kind == ALLOCATOR_MAIN_ARENA);
}

static void write_one(struct writer *w, const struct allocation *a, const struct chain_end *c)
{
	enum allocator kind = model_allocator(w->m, &a->block);
	yajl_gen g = w->g;

	yajl_gen_map_open(g);
	json_number(g, "id", a->block.ordinal);
	json_address(g, a->block.addr);
	json_moment(g, w->m, "timestamp", a->block.time_ns);
	json_number(g, "thread", a->block.tid);
	json_number(g, "size", a->block.size);
	json_number(g, "extra_space", a->block.usable - a->block.size);
	allocation_kind_json(g, kind);
	if (a->ended)
		write_end(w, "deallocation", a->end_ns, a->end_tid, a->end_stack);
	write_chain(w, a, c);
	json_stacks_refer(&w->stacks, g, a->block.stack);
	yajl_gen_map_close(g);
}

static int write_json(struct model *m, const struct view *v, const struct allocations *a, FILE *out)
{
	struct writer w = {.g = json_begin(out, true), .m = m};
	int ret = w.g ? json_stacks_init(&w.stacks, m) : -ENOMEM;

	if (ret) {
		if (w.g)
			yajl_gen_free(w.g);
		return ret;
	}
	yajl_gen_map_open(w.g);
	json_name(w.g, "allocations");
	yajl_gen_array_open(w.g);
	for (uint64_t i = v->skip; i < a->at.n; i++)
		write_one(&w, &a->at.at[i], allocations_chain(a, &a->at.at[i]));
	yajl_gen_array_close(w.g);
	json_stacks_write(&w.stacks, w.g, m);
	json_number(w.g, "total_count", a->total);
	yajl_gen_map_close(w.g);
	yajl_gen_free(w.g);
	json_stacks_free(&w.stacks);
	return ferror(out) ? -EIO : 0;
}

/* ------------------------------------------------------------------ text -- */

static void write_text(struct model *m, const struct view *v, const struct allocations *a,
		       FILE *out)
{
	char size[24], life[24], chain[32];

	fprintf(out, "%11s %11s  %-14s %8s %10s %7s  %s\n", "seconds", "lived", "address", "thread",
		"size", "chain", "allocator");
	for (uint64_t i = v->skip; i < a->at.n; i++) {
		const struct allocation *at = &a->at.at[i];
		const struct chain_end *c = allocations_chain(a, at);

		snprintf(life, sizeof(life), at->ended ? "%.6f" : "live",
			 (double)(at->end_ns - at->block.time_ns) / 1e9);
		snprintf(chain, sizeof(chain), "%llu/%llu", (unsigned long long)at->position + 1,
			 c ? (unsigned long long)c->length : 1);
		fprintf(out, "%11.6f %11s  %-14llx %8u %10s %7s  %s\n",
			(double)at->block.time_ns / 1e9, life, (unsigned long long)at->block.addr,
			at->block.tid, human_bytes(at->block.size, size), chain,
			allocator_text(model_allocator(m, &at->block)));
		text_stack(m, at->block.stack, FRAMES, "                  ", out);
	}
	text_rest(v, a->total, "allocation", out);
}

int allocations_write(struct model *m, const struct view *v, FILE *out, uint64_t *total,
		      struct mp_err *err)
{
	struct allocations a;
	int ret = allocations_collect(m, v, NULL, &a, err);

	if (ret)
		return ret;
	*total = a.total;
	if (v->json)
		ret = write_json(m, v, &a, out);
	else
		write_text(m, v, &a, out);
	allocations_free(&a);
	if (ret)
		mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
	return ret;
}
