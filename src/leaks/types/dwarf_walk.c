/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/dwarf_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/types/cxx_type.h"
#include "lib/bitmap.h"
#include "lib/intern.h"

#define LOOK_AT_CLOCK	4096 /* steps */
#define CACHE_PER_BLOCK 16   /* bytes */

int dwarf_walk_init(struct dwarf_walk *w, struct block_names *names, const struct graph *g,
		    struct image *img, struct dwarf_types *types, struct deadline until)
{
	*w = (struct dwarf_walk){.names = names,
				 .g = g,
				 .img = img,
				 .types = types,
				 .until = until,
				 .word = img->arch->word_size};
	w->memory = dwarf_memory_new(img, (uint64_t)g->n * CACHE_PER_BLOCK);
	w->claimed = bitmap_new(g->n);
	w->waiting = bitmap_new(g->n);
	w->form_ids = intern_new();
	w->counted = intern_new();
	return w->memory && w->claimed && w->waiting && w->form_ids && w->counted ? 0 : -ENOMEM;
}

void dwarf_walk_free(struct dwarf_walk *w)
{
	dwarf_memory_free(w->memory);
	free(w->claimed);
	free(w->waiting);
	vec_free(&w->now);
	vec_free(&w->later);
	vec_free(&w->forms);
	vec_free(&w->classes);
	intern_free(w->form_ids);
	intern_free(w->counted);
}

bool dwarf_late(struct dwarf_walk *w)
{
	if (!w->late && ++w->steps % LOOK_AT_CLOCK == 0)
		w->late = deadline_passed(&w->until);
	return w->late || w->no_memory;
}

/* ------------------------------------------------------------- blocks -- */

uint32_t dwarf_block(const struct dwarf_walk *w, uint64_t addr, uint64_t size)
{
	const uint32_t block = index_find(&w->g->index, addr);

	if (block == INDEX_NONE || w->g->block[block].addr != addr ||
	    w->g->block[block].size < size)
		return INDEX_NONE;
	return block;
}

bool dwarf_claim(struct dwarf_walk *w, uint32_t block, uint32_t id)
{
	if (dwarf_claimed(w, block))
		return false;
	bitmap_set(w->claimed, block);
	if (id)
		block_names_set(w->names, block, id);
	return true;
}

void dwarf_wait(struct dwarf_walk *w, uint32_t block, struct dwarf_type *t, uint64_t offset,
		uint64_t from, uint64_t n)
{
	struct dwarf_item it = {.block = block, .from = (uint32_t)from, .n = (uint32_t)n};
	const struct dwarf_form form = {t, offset};
	bool fresh;

	dwarf_type_complete(w->types, t);
	if (!t->follow || !n || from + n > UINT32_MAX)
		return;
	it.form = intern_pair(w->form_ids, (uintptr_t)t, offset, &fresh);
	if (!it.form || (fresh && vec_push(&w->forms, form)) || vec_push(&w->now, it))
		w->no_memory = true;
}

bool dwarf_count_once(struct dwarf_walk *w, uint64_t addr)
{
	bool fresh = false;

	if (!intern_pair(w->counted, addr, 0, &fresh))
		w->no_memory = true;
	return fresh;
}

bool dwarf_words(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l, int n,
		 uint64_t *value)
{
	for (int i = 0; i < n; i++) {
		if (!dwarf_word(w, addr + l->at[i], &value[i]))
			return false;
	}
	return true;
}

uint32_t dwarf_name(struct dwarf_walk *w, const char *before, const char *type, const char *after,
		    const char *owner)
{
	char text[CXX_TYPE_MAX + 64];
	uint32_t id;

	snprintf(text, sizeof(text), "%s%s%s", before, type, after);
	id = block_names_id(w->names, text, owner, NAME_DWARF);
	if (!id)
		w->no_memory = true;
	return id;
}

void dwarf_add(struct dwarf_walk *w, const struct dwarf_layout *l, struct container *c)
{
	c->name = l->id;
	if (l->id && block_names_container(w->names, c))
		w->no_memory = true;
}

bool dwarf_claim_nodes(struct dwarf_walk *w, const struct dwarf_layout *l,
		       const struct dwarf_nodes *nodes, uint32_t id, struct container *c)
{
	vec_for_each (&nodes->list, block) {
		if (dwarf_claimed(w, *block))
			return false;
	}
	vec_for_each (&nodes->list, it) {
		/* In a damaged one a node can be there twice. */
		if (!dwarf_claim(w, *it, id))
			continue;
		c->blocks++;
		c->bytes += w->g->block[*it].size;
	}
	/* The first one is followed first. */
	for (size_t i = nodes->list.n; i && l->value; i--)
		dwarf_wait(w, nodes->list.at[i - 1], l->value, l->value_offset, 0, 1);
	return true;
}

/* ------------------------------------------------------------- types -- */

bool dwarf_paths(struct dwarf_walk *w, struct dwarf_type *t, const char *const *path, int n,
		 uint64_t *at, struct dwarf_type **first)
{
	for (int i = 0; i < n; i++) {
		struct dwarf_type *found = dwarf_type_member(w->types, t, path[i], &at[i]);

		if (!found)
			return false;
		if (!i && first)
			*first = found;
	}
	return true;
}

bool dwarf_is_std(const struct dwarf_type *t, const char *name)
{
	static const char *const scopes[] = {"std::", "std::__cxx11::", "std::__1::",
					     "std::__cxx1998::", "std::__cxx1998::__cxx11::"};
	const size_t n = strlen(name);

	if (!t->raw || strncmp(t->raw, name, n) != 0 || t->raw[n] != '<')
		return false;
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (!strcmp(t->scope, scopes[i]))
			return true;
	}
	return false;
}

struct dwarf_type *dwarf_value(struct dwarf_walk *w, struct dwarf_type *t)
{
	struct dwarf_type *last = NULL, *next;

	for (int i = 0; i < 8; i++) {
		next = dwarf_type_argument(w->types, t, i);
		if (!next)
			break;
		last = next;
	}
	if (!last || last->kind != DWARF_STRUCT || !last->raw || !strstr(last->raw, "allocator"))
		return NULL;
	next = dwarf_type_argument(w->types, last, 0);
	/* GCC has no arguments at std::allocator itself, but at its base class. */
	dwarf_type_complete(w->types, last);
	for (uint32_t i = 0; i < last->members && !next; i++) {
		if (!last->member[i].name && last->member[i].type->kind == DWARF_STRUCT)
			next = dwarf_type_argument(w->types, last->member[i].type, 0);
	}
	return next && next->size ? next : NULL;
}
