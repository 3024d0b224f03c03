/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pointers of the C++ standard library that own what they point to. */
#include <stdio.h>
#include <string.h>
#include "leaks/types/containers.h"
#include "leaks/types/cxx_type.h"

enum { OBJECT, CONTROL };

/* ------------------------------------------------------------- shared_ptr -- */

static bool know_shared(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_ptr", "_M_refcount._M_pi"}, *const llvm[] = {
									      "__ptr_", "__cntrl_"};
	struct dwarf_type *object;

	if (!dwarf_is_std(t, "shared_ptr") || (!dwarf_paths(w, t, gnu, 2, l->at, &object) &&
					       !dwarf_paths(w, t, llvm, 2, l->at, &object)))
		return false;
	if (object->kind != DWARF_POINTER)
		return false;
	l->value = object->target;
	return true;
}

/* The type of an object whose declared type can be a base class of it. */
static struct dwarf_type *dynamic_type(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t,
				       char *name)
{
	struct dwarf_type *dynamic = NULL;
	struct type class;
	uint64_t vtable;

	snprintf(name, CXX_TYPE_MAX, "%s", t->name);
	if (!dwarf_word(w, addr, &vtable) || !types_class(w->names->types, vtable, &class))
		return t;
	cxx_type_shorten(class.name, name);
	dynamic = strcmp(name, t->name) != 0 ? dwarf_type_named(w->types, name) : t;
	return dynamic ? dynamic : t;
}

/* The control block has a class of its own, with a long name that says less. */
static void rename_block(struct dwarf_walk *w, uint32_t block, uint32_t id)
{
	if (id)
		w->names->of[block] = (uint16_t)id;
}

static bool take_shared(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr, .elements = 1};
	struct dwarf_type *t = l->value;
	const char *how = "";
	char name[CXX_TYPE_MAX];
	uint64_t p[2], size;
	uint32_t block;

	if (w->only_checked || !dwarf_words(w, addr, l, 2, p) || !p[CONTROL])
		return false;
	/* At least a vtable and two counts. */
	block = dwarf_block(w, p[CONTROL], w->word + 8ull);
	if (block == INDEX_NONE || dwarf_claimed(w, block))
		return false;
	size = w->g->block[block].size;
	t = dynamic_type(w, p[OBJECT], t, name);
	(void)dwarf_claim(w, block, 0);
	/* By make_shared() the object is in the same block; a pointer to a member of it can be, too. */
	if (p[OBJECT] - p[CONTROL] < size) {
		how = " (make_shared)";
		if (t->size && t->size <= size - (p[OBJECT] - p[CONTROL]))
			dwarf_wait(w, block, t, p[OBJECT] - p[CONTROL], 0, 1);
	}
	rename_block(w, block, dwarf_name(w, "shared_ptr control block of ", name, how, NULL));
	c.first = p[CONTROL];
	c.blocks = 1;
	c.bytes = size;
	dwarf_add(w, l, &c);
	return false;
}

const struct dwarf_container container_shared = {know_shared, take_shared, NULL};

/* ------------------------------------------------------------- unique_ptr -- */

static bool know_unique(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	uint64_t *at = &l->at[OBJECT];
	struct dwarf_type *object, *argument;

	if (!dwarf_is_std(t, "unique_ptr"))
		return false;
	object = dwarf_type_member(w->types, t, "_M_t._M_t.#0.#1._M_head_impl", at);
	if (!object)
		object = dwarf_type_member(w->types, t, "__ptr_.__value_", at);
	if (!object || object->kind != DWARF_POINTER)
		return false;
	argument = dwarf_type_argument(w->types, t, 0);
	l->flag = argument && argument->kind == DWARF_ARRAY && object->target->size;
	l->value = object->target;
	if (l->flag)
		l->id_of[0] = dwarf_name(w, "array of ", t->name, "", NULL);
	return true;
}

/* What it points to is followed like that of any pointer, but one to an array is known to be one. */
static bool take_unique(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	uint64_t object;
	uint32_t block;

	if (w->only_checked || !dwarf_words(w, addr, l, 1, &object))
		return false;
	c.elements = object != 0;
	block = l->flag ? dwarf_block(w, object, 1) : INDEX_NONE;
	if (block != INDEX_NONE && dwarf_claim(w, block, l->id_of[0])) {
		c.first = object;
		c.blocks = 1;
		c.bytes = w->g->block[block].size;
		c.elements = c.bytes / l->value->size;
		dwarf_wait(w, block, l->value, 0, 0, c.elements);
	}
	dwarf_add(w, l, &c);
	return false;
}

const struct dwarf_container container_unique = {know_unique, take_unique, NULL};
