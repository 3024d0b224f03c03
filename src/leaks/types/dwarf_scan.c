/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A pointer's declared type says what the block has that it points to, if the size fits: allocators
 * round up (dwarf_fits()).  A larger block is an array, or has a larger structure
 * that begins with this one; such waits until all exact ways have been followed, because what is
 * behind the used elements of an array can be old pointers to blocks that have another type by now.
 */
#include "leaks/types/dwarf_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/types/containers.h"
#include "leaks/types/cxx_type.h"
#include "lib/bitmap.h"
#include "lib/intern.h"

#define MAX_DEPTH 40	     /* of members in members */
#define CHUNK	  (1u << 20) /* elements of a block that are followed before what they lead to */
#define SORTED	  64	     /* as many that wait are followed in order of address */
#define CHECKED	  16	     /* elements that must look like those of an array */

/* ------------------------------------------------------------- names -- */

/* The file of a type; none for those that each program has. */
static const char *owner_of(const struct dwarf_type *t)
{
	while (t->kind == DWARF_POINTER || t->kind == DWARF_ARRAY)
		t = t->target;
	return t->kind == DWARF_BASE || !strncmp(t->scope, "std::", 5) ? NULL : t->owner;
}

/* Is it a type that the standard library keeps to itself?  Blocks have it as their beginning. */
static bool is_internal(const struct dwarf_type *t)
{
	while (t->kind == DWARF_POINTER || t->kind == DWARF_ARRAY)
		t = t->target;
	return t->raw && t->raw[0] == '_' && !strncmp(t->scope, "std::", 5);
}

static uint32_t name_of(struct dwarf_walk *w, struct dwarf_type *t)
{
	if (!t->id && t->name[0] && !is_internal(t))
		t->id = dwarf_name(w, "", t->name, "", owner_of(t));
	return t->id;
}

static uint32_t array_name_of(struct dwarf_walk *w, struct dwarf_type *t)
{
	if (!t->id_array && t->name[0] && !is_internal(t))
		t->id_array = dwarf_name(w, "", t->name, "[]", owner_of(t));
	return t->id_array;
}

/* Return: the type of the block's class, by its vtable; NULL: it has none, or it is not known. */
static struct dwarf_type *class_of(struct dwarf_walk *w, uint32_t block, bool *is_class)
{
	const struct block_name *name = block_names_of(w->names, block);
	const uint32_t id = name ? w->names->of[block] : 0;
	struct dwarf_type *class;
	char shorter[CXX_TYPE_MAX];

	*is_class = name && name->source == NAME_VTABLE;
	if (!*is_class)
		return NULL;
	while (w->classes.n <= id) {
		if (vec_push(&w->classes, NULL)) {
			w->no_memory = true;
			return NULL;
		}
	}
	if (!w->classes.at[id]) {
		cxx_type_shorten(name->text, shorter);
		class = dwarf_type_named(w->types, shorter);
		w->classes.at[id] = class ? class : &w->no_class;
	}
	return w->classes.at[id] == &w->no_class ? NULL : w->classes.at[id];
}

/* ------------------------------------------------------------- pointers -- */

static void wait_later(struct dwarf_walk *w, uint32_t block, struct dwarf_type *t)
{
	const struct dwarf_form form = {t, 0};
	struct dwarf_item it = {.block = block};
	bool fresh;

	if (bitmap_has(w->waiting, block))
		return;
	bitmap_set(w->waiting, block);
	dwarf_type_complete(w->types, t);
	it.form = intern_pair(w->form_ids, (uintptr_t)t, 0, &fresh);
	if (!it.form || (fresh && vec_push(&w->forms, form)) || vec_push(&w->later, it))
		w->no_memory = true;
}

static const struct dwarf_layout *layout_of(struct dwarf_walk *w, struct dwarf_type *t)
{
	if (!t->layout_known) {
		t->layout_known = true;
		t->layout = containers_layout(w, t);
	}
	return t->layout;
}

static bool is_object(const struct dwarf_type *t)
{
	return t->kind == DWARF_STRUCT || t->kind == DWARF_UNION;
}

static void claim_object(struct dwarf_walk *w, uint32_t block, struct dwarf_type *t)
{
	if (dwarf_claim(w, block, name_of(w, t)))
		dwarf_wait(w, block, t, 0, 0, 1);
}

/* Follows the pointer @value, which is at @at, to a @t. */
static void follow(struct dwarf_walk *w, uint64_t at, uint64_t value, struct dwarf_type *t)
{
	const struct dwarf_layout *l = t->kind == DWARF_STRUCT ? layout_of(w, t) : NULL;
	const uint32_t block = index_find(&w->g->index, value);
	const struct heap_block *b;
	struct dwarf_type *class;
	bool is_class;

	if (block == INDEX_NONE)
		return;
	if (l && l->is->take_at) {
		l->is->take_at(w, at, value, l);
		return;
	}
	if (dwarf_claimed(w, block))
		return;
	b = &w->g->block[block];
	class = class_of(w, block, &is_class);
	if (class && class->size && class->size <= b->size) {
		claim_object(w, block, class);
		return;
	}
	if (value != b->addr)
		return;
	while (t->kind == DWARF_ARRAY)
		t = t->target;
	dwarf_type_complete(w->types, t);
	if (!t->size || t->size > b->size)
		return;
	/* The object of a class that is not known begins with that of a base class. */
	if (is_object(t) && (is_class || t->flexible || dwarf_fits(t->size, b->size)))
		claim_object(w, block, t);
	else if (t->kind == DWARF_BASE || t->kind == DWARF_POINTER || is_object(t))
		wait_later(w, block, t);
}

/* ------------------------------------------------------------- objects -- */

/* Recursion is bounded by MAX_DEPTH.  Return: false if the memory cannot be read. */
static bool scan_object(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t, int depth)
{
	const struct dwarf_layout *l;
	bool readable = true;
	uint64_t value;

	dwarf_type_complete(w->types, t);
	if (!t->follow || depth == MAX_DEPTH)
		return true;
	switch (t->kind) {
	case DWARF_POINTER:
		if (!dwarf_word(w, addr, &value))
			return false;
		if (value && !w->only_checked)
			follow(w, addr, value, t->target);
		return true;
	case DWARF_ARRAY:
		for (uint64_t i = 0; i < t->count && readable && !dwarf_late(w); i++)
			readable = scan_object(w, addr + i * t->target->size, t->target, depth + 1);
		return readable;
	case DWARF_UNION:
		/* Which member is valid is not known, unless all are of one type. */
		for (uint32_t i = 1; i < t->members; i++) {
			if (t->member[i].type != t->member[0].type)
				return true;
		}
		return scan_object(w, addr, t->member[0].type, depth + 1);
	default:
		break;
	}
	l = layout_of(w, t);
	if (l && l->is->take && l->is->take(w, addr, l))
		return true;
	for (uint32_t i = 0; i < t->members && readable; i++) {
		if (t->member[i].type->follow)
			readable = scan_object(w, addr + t->member[i].offset, t->member[i].type,
					       depth + 1);
	}
	return readable;
}

/* The elements of a flexible array member. */
static void scan_rest(struct dwarf_walk *w, uint32_t block, struct dwarf_type *t)
{
	const struct heap_block *b = &w->g->block[block];
	const struct dwarf_member *last = &t->member[t->members - 1];
	struct dwarf_type *element = last->type->target;
	uint64_t n;

	dwarf_type_complete(w->types, element);
	if (!element->follow || !element->size || last->offset >= b->size)
		return;
	n = (b->size - last->offset) / element->size;
	for (uint64_t i = last->type->count; i < n && !dwarf_late(w); i++) {
		if (!scan_object(w, b->addr + last->offset + i * element->size, element, 1))
			break;
	}
}

static int by_block(const void *a, const void *b)
{
	const struct dwarf_item *x = a, *y = b;

	if (x->block != y->block)
		return x->block > y->block ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts what waits since there were @before, so that memory is read in order. */
static void sort_waiting(struct dwarf_walk *w, size_t before)
{
	if (w->now.n > before + SORTED)
		qsort(w->now.at + before, w->now.n - before, sizeof(w->now.at[0]), by_block);
}

/* Follows some of the elements of @it, and puts the rest back. */
static void scan_item(struct dwarf_walk *w, struct dwarf_item it)
{
	const struct dwarf_form form = w->forms.at[it.form - 1];
	const uint64_t first = w->g->block[it.block].addr + form.offset,
		       until = w->g->block[it.block].addr + w->g->block[it.block].size;
	const uint32_t n = it.n < CHUNK ? it.n : CHUNK;
	struct dwarf_item rest = {it.block, it.form, it.from + n, it.n - n};
	size_t before;

	if (rest.n && vec_push(&w->now, rest))
		w->no_memory = true;
	before = w->now.n;
	for (uint32_t i = 0; i < n && !w->no_memory; i++) {
		const uint64_t addr = first + (uint64_t)(it.from + i) * form.type->size;

		if (addr >= until || until - addr < form.type->size ||
		    !scan_object(w, addr, form.type, 0))
			break;
	}
	if (form.type->flexible && !form.offset && it.n == 1)
		scan_rest(w, it.block, form.type);
	sort_waiting(w, before);
}

/* ------------------------------------------------------------- less certain -- */

/* Does the object at @addr have pointers, and do all of them point to memory?  Sets *@some if one is not
 * NULL. */
static bool pointers_are_valid(struct dwarf_walk *w, uint64_t addr, const struct dwarf_type *t,
			       bool *some, int depth)
{
	uint64_t value;

	for (uint32_t i = 0; i < t->members; i++) {
		const struct dwarf_member *m = &t->member[i];

		if (m->type->kind == DWARF_STRUCT && depth < 4 &&
		    !pointers_are_valid(w, addr + m->offset, m->type, some, depth + 1))
			return false;
		if (m->type->kind != DWARF_POINTER)
			continue;
		if (!dwarf_word(w, addr + m->offset, &value) ||
		    (value && !image_map_at(w->img, value)))
			return false;
		*some |= value != 0;
	}
	return true;
}

static bool looks_like_array(struct dwarf_walk *w, const struct heap_block *b,
			     const struct dwarf_type *t)
{
	const uint64_t n = b->size / t->size;
	bool some = false;

	for (uint64_t i = 1; i < n && i < CHECKED; i++) {
		if (!pointers_are_valid(w, b->addr + i * t->size, t, &some, 0))
			return false;
	}
	return some;
}

static void take_later(struct dwarf_walk *w, struct dwarf_item it)
{
	struct dwarf_type *t = w->forms.at[it.form - 1].type;
	const struct heap_block *b = &w->g->block[it.block];
	const bool object = is_object(t);
	const char *doubt = " or a larger structure";
	uint64_t n = b->size / t->size;
	char text[CXX_TYPE_MAX + 64];

	/* Its characters say more. */
	if (dwarf_claimed(w, it.block) ||
	    (t->kind == DWARF_BASE && t->size == 1 && w->names->of[it.block] == BLOCK_NAMES_TEXT))
		return;
	if (!object && n == 1) {
		claim_object(w, it.block, t);
		return;
	}
	if (!object || is_internal(t) || looks_like_array(w, b, t)) {
		(void)dwarf_claim(w, it.block, array_name_of(w, t));
	} else {
		n = 1;
		snprintf(text, sizeof(text), "%s[]", t->name);
		(void)dwarf_claim(w, it.block,
				  t->name[0] ? dwarf_name(w, text, doubt, "", owner_of(t)) : 0);
	}
	dwarf_wait(w, it.block, t, 0, 0, n);
}

/* ------------------------------------------------------------- all of it -- */

static void scan_now(struct dwarf_walk *w)
{
	while (w->now.n && !dwarf_late(w))
		scan_item(w, w->now.at[--w->now.n]);
}

void dwarf_scan(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t)
{
	(void)scan_object(w, addr, t, 0);
	sort_waiting(w, 0);
	scan_now(w);
}

void dwarf_scan_local(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t)
{
	const uint64_t broken = w->broken;

	w->only_checked = true;
	(void)scan_object(w, addr, t, 0);
	w->only_checked = false;
	/* Many are not constructed yet, or not any more. */
	w->broken = broken;
	dwarf_scan_waiting(w);
}

void dwarf_scan_waiting(struct dwarf_walk *w)
{
	scan_now(w);
	while (w->later.n && !dwarf_late(w)) {
		take_later(w, w->later.at[--w->later.n]);
		scan_now(w);
	}
}

void dwarf_scan_classes(struct dwarf_walk *w)
{
	for (uint32_t i = 0; i < w->g->n && !dwarf_late(w); i++) {
		struct dwarf_type *class;
		bool is_class;

		if (dwarf_claimed(w, i))
			continue;
		class = class_of(w, i, &is_class);
		if (!class || !class->size || class->size > w->g->block[i].size)
			continue;
		claim_object(w, i, class);
		dwarf_scan_waiting(w);
	}
}
