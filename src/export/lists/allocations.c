/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/allocations.h"

#include <string.h>
#include "export/lists/entries.h"
#include "lib/human.h"
#include "model/filter/filter.h"
#include "model/names/allocator.h"

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

/* @stack: 0: not recorded. */
static void write_end(struct entries *e, const char *key, uint64_t ns, uint64_t tid, uint32_t stack)
{
	yajl_gen g = e->g;

	json_name(g, key);
	yajl_gen_map_open(g);
	json_moment(g, e->m, "timestamp", ns);
	json_number(g, "thread", tid);
	if (stack)
		json_stacks_refer(&e->stacks, g, stack);
	yajl_gen_map_close(g);
}

static void write_chain(struct entries *e, const struct allocation *a)
{
	const struct chain_end *c = allocations_chain(e->list, a);
	yajl_gen g = e->g;

	json_number(g, "position_in_chain", a->position);
	json_number(g, "chain_length", c ? c->length : 1);
	if (c ? !c->ended : !a->ended)
		return;
	if (c && a->position + 1 < c->length)
		write_end(e, "chain_deallocation", c->end_ns, c->end_tid, 0);
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

static void write_json(struct entries *e, const struct allocation *a)
{
	enum allocator kind = model_allocator(e->m, &a->block);
	yajl_gen g = e->g;

	yajl_gen_map_open(g);
	json_number(g, "id", a->block.ordinal);
	json_address(g, a->block.addr);
	json_moment(g, e->m, "timestamp", a->block.time_ns);
	json_number(g, "thread", a->block.tid);
	json_number(g, "size", a->block.size);
	json_number(g, "extra_space", a->block.usable - a->block.size);
	allocation_kind_json(g, kind);
	if (a->ended)
		write_end(e, "deallocation", a->end_ns, a->end_tid, a->end_stack);
	write_chain(e, a);
	json_stacks_refer(&e->stacks, g, a->block.stack);
	yajl_gen_map_close(g);
}

static void write_text(struct entries *e, const struct allocation *a)
{
	const struct chain_end *c = allocations_chain(e->list, a);
	char size[24], life[24], chain[32];

	snprintf(life, sizeof(life), a->ended ? "%.6f" : "live",
		 (double)(a->end_ns - a->block.time_ns) / 1e9);
	snprintf(chain, sizeof(chain), "%llu/%llu", (unsigned long long)a->position + 1,
		 c ? (unsigned long long)c->length : 1);
	fprintf(e->out, "%11.6f %11s  %-14llx %8u %10s %7s  %s\n", (double)a->block.time_ns / 1e9,
		life, (unsigned long long)a->block.addr, a->block.tid,
		human_bytes(a->block.size, size), chain,
		allocator_text(model_allocator(e->m, &a->block)));
}

int allocations_write(struct model *m, const struct view *v, FILE *out, uint64_t *total,
		      struct mp_err *err)
{
	static const struct entry_format format = {
	    .key = "allocations",
	    .noun = "allocation",
	    .heading =
		"    seconds       lived  address          thread       size   chain  allocator",
	    .json = write_json,
	    .text = write_text,
	};

	return entries_write(m, v, &format, out, total, err);
}
