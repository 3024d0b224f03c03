/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DWARF 5, chapters 3 and 5; attributes of DWARF 2 to 4 have the same meaning. */
#include "leaks/types/dwarf_types.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/types/cxx_type.h"
#include "lib/intern.h"
#include "lib/vec.h"

#define MAX_DEPTH   32	    /* of types in types */
#define MAX_TYPES   500000u /* that are read */
#define MAX_MEMBERS 20000u  /* of one structure */
#define MAX_SKIPPED 64	    /* typedefs and the like, one after the other */

struct dwarf_types {
	const struct arch *arch;
	struct dwarf_units *units;
	struct intern *known;	     /* addresses of DIEs */
	VEC(struct dwarf_type *) of; /* by id in .known - 1 */
	VEC(struct dwarf_type *) all;
	bool cut;
	struct dwarf_type nothing, nix; /* of kind DWARF_NOTHING and DWARF_VOID */
};

struct dwarf_types *dwarf_types_new(const struct arch *arch, struct dwarf_units *units)
{
	struct dwarf_types *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->arch = arch;
	t->units = units;
	t->known = intern_new();
	t->nothing = (struct dwarf_type){
	    .kind = DWARF_NOTHING, .complete = true, .align = 1, .name = "", .scope = ""};
	t->nix = t->nothing;
	t->nix.kind = DWARF_VOID;
	t->nix.name = "void";
	if (t->known)
		return t;
	free(t);
	return NULL;
}

void dwarf_types_free(struct dwarf_types *t)
{
	if (!t)
		return;
	vec_for_each (&t->all, it) {
		free((*it)->member);
		free((*it)->layout);
		free((char *)(*it)->name);
		free(*it);
	}
	vec_free(&t->all);
	vec_free(&t->of);
	intern_free(t->known);
	free(t);
}

bool dwarf_types_cut(const struct dwarf_types *t)
{
	return t->cut;
}

/* ------------------------------------------------------------- attributes -- */

static bool die_number(Dwarf_Die *die, unsigned int at, uint64_t *value)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (dwarf_formudata(dwarf_attr(die, at, &attr), &v))
		return false;
	*value = v;
	return true;
}

static bool type_attribute(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), type) != NULL;
}

static bool is_qualifier(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

/* ------------------------------------------------------------- new types -- */

static struct dwarf_type *new_type(struct dwarf_types *t, const Dwarf_Die *die,
				   enum dwarf_kind kind)
{
	struct dwarf_type *it;

	if (t->all.n >= MAX_TYPES) {
		t->cut = true;
		return &t->nothing;
	}
	it = calloc(1, sizeof(*it));
	if (!it || vec_push(&t->all, it)) {
		free(it);
		return &t->nothing;
	}
	*it = (struct dwarf_type){.kind = kind, .align = 1, .die = *die, .scope = ""};
	it->name = strdup("");
	return it;
}

static void set_name(struct dwarf_type *it, const char *text)
{
	free((char *)it->name);
	it->name = strdup(text);
}

/* Return: its name; "?" without one. */
static const char *shown(const struct dwarf_type *it)
{
	return it->name && it->name[0] ? it->name : "?";
}

static void name_structure(struct dwarf_types *t, struct dwarf_type *it, const char *alias)
{
	char text[2048], shorter[CXX_TYPE_MAX];

	it->raw = dwarf_diename(&it->die);
	it->scope = dwarf_units_scope(t->units, &it->die);
	it->owner = dwarf_units_path(t->units, &it->die);
	if (!it->raw && !alias)
		return;
	snprintf(text, sizeof(text), "%s%s", it->scope, it->raw ? it->raw : alias);
	cxx_type_shorten(text, shorter);
	set_name(it, shorter);
}

static struct dwarf_type *type_of(struct dwarf_types *t, Dwarf_Die *die, const char *alias,
				  int depth);

static struct dwarf_type *target_of(struct dwarf_types *t, Dwarf_Die *die, int depth)
{
	Dwarf_Die target;

	return type_attribute(die, &target) ? type_of(t, &target, NULL, depth + 1) : &t->nix;
}

static struct dwarf_type *new_pointer(struct dwarf_types *t, Dwarf_Die *die, int depth)
{
	struct dwarf_type *it = new_type(t, die, DWARF_POINTER);
	char text[CXX_TYPE_MAX];

	if (it == &t->nothing)
		return it;
	it->size = it->align = t->arch->word_size;
	it->complete = true;
	it->target = target_of(t, die, depth);
	it->follow = it->target->kind != DWARF_NOTHING && it->target->kind != DWARF_VOID &&
		     it->target->kind != DWARF_FUNCTION;
	snprintf(text, sizeof(text), "%.500s*",
		 it->target->kind == DWARF_FUNCTION ? "function" : shown(it->target));
	set_name(it, text);
	return it;
}

/* Sets *@count to the number of elements, over all dimensions; 0: not known. */
static void array_count(Dwarf_Die *die, uint64_t *count)
{
	uint64_t n, all = 1;
	Dwarf_Die range;

	*count = 0;
	if (dwarf_child(die, &range))
		return;
	do {
		if (dwarf_tag(&range) != DW_TAG_subrange_type)
			continue;
		if (!die_number(&range, DW_AT_count, &n)) {
			if (!die_number(&range, DW_AT_upper_bound, &n) || n == UINT64_MAX)
				return;
			n++;
		}
		/* "[-1]" in some versions of GCC for an array without size. */
		if (n > 1ull << 40 || all > 1ull << 40)
			return;
		all *= n;
	} while (dwarf_units_next(&range));
	*count = all;
}

static struct dwarf_type *new_array(struct dwarf_types *t, Dwarf_Die *die, int depth)
{
	struct dwarf_type *it = new_type(t, die, DWARF_ARRAY);
	char text[CXX_TYPE_MAX];

	if (it == &t->nothing)
		return it;
	it->target = target_of(t, die, depth);
	array_count(die, &it->count);
	if (dwarf_hasattr(die, DW_AT_GNU_vector) || it->count > 1ull << 40 ||
	    it->target->size > 1ull << 40)
		it->kind = DWARF_BASE;
	it->size = it->count * it->target->size;
	if (it->count)
		snprintf(text, sizeof(text), "%.480s[%llu]", shown(it->target),
			 (unsigned long long)it->count);
	else
		snprintf(text, sizeof(text), "%.480s[]", shown(it->target));
	set_name(it, text);
	return it;
}

/* Return: the definition in the type unit that the declaration @die names by its signature, or NULL.  That
 * has no scope of its own: the declaration @it has. */
static struct dwarf_type *by_signature(struct dwarf_types *t, Dwarf_Die *die,
				       const struct dwarf_type *it, int depth)
{
	struct dwarf_type *whole;
	Dwarf_Attribute attr;
	Dwarf_Die definition;

	if (!dwarf_formref_die(dwarf_attr(die, DW_AT_signature, &attr), &definition))
		return NULL;
	whole = type_of(t, &definition, NULL, depth + 1);
	if (whole->kind != it->kind || !it->name)
		return NULL;
	if (!whole->scope[0] && it->scope[0] && !whole->layout_known) {
		whole->scope = it->scope;
		whole->raw = it->raw;
		set_name(whole, it->name);
	}
	return whole;
}

static struct dwarf_type *new_structure(struct dwarf_types *t, Dwarf_Die *die, enum dwarf_kind kind,
					const char *alias, int depth)
{
	struct dwarf_type *it = new_type(t, die, kind), *whole;

	if (it == &t->nothing)
		return it;
	name_structure(t, it, alias);
	(void)die_number(die, DW_AT_byte_size, &it->size);
	if (it->size > 1ull << 40)
		it->size = 0;
	if (dwarf_hasattr(die, DW_AT_declaration)) {
		whole = by_signature(t, die, it, depth);
		if (!whole && it->name)
			whole = dwarf_type_named(t, it->name);
		if (whole && whole->kind == kind)
			return whole;
		it->size = 0;
		it->complete = true;
	}
	return it;
}

static struct dwarf_type *new_base(struct dwarf_types *t, Dwarf_Die *die)
{
	struct dwarf_type *it = new_type(t, die, DWARF_BASE);
	const char *name = dwarf_diename(die);

	if (it == &t->nothing)
		return it;
	(void)die_number(die, DW_AT_byte_size, &it->size);
	if (it->size && it->size <= 16 && !(it->size & (it->size - 1)))
		it->align = it->size;
	it->complete = true;
	if (name)
		set_name(it, name);
	return it;
}

static struct dwarf_type *make(struct dwarf_types *t, Dwarf_Die *die, const char *alias, int depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type:
		return new_base(t, die);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return new_pointer(t, die, depth);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return new_structure(t, die, DWARF_STRUCT, alias, depth);
	case DW_TAG_union_type:
		return new_structure(t, die, DWARF_UNION, alias, depth);
	case DW_TAG_array_type:
		return new_array(t, die, depth);
	case DW_TAG_subroutine_type:
		return new_type(t, die, DWARF_FUNCTION);
	default:
		return &t->nothing;
	}
}

/* Recursion is bounded: MAX_DEPTH, and a pointer's target is a type of its own. */
static struct dwarf_type *type_of(struct dwarf_types *t, Dwarf_Die *die, const char *alias,
				  int depth)
{
	Dwarf_Die at = *die, next;
	struct dwarf_type *it;
	bool fresh;
	uint32_t id;

	for (int i = 0; is_qualifier(dwarf_tag(&at)); i++) {
		if (dwarf_tag(&at) == DW_TAG_typedef && dwarf_diename(&at))
			alias = dwarf_diename(&at);
		if (i == MAX_SKIPPED)
			return &t->nothing;
		if (!type_attribute(&at, &next))
			return &t->nix;
		at = next;
	}
	if (depth >= MAX_DEPTH)
		return &t->nothing;
	id = intern_pair(t->known, (uintptr_t)at.addr, 0, &fresh);
	if (!id)
		return &t->nothing;
	if (!fresh)
		return t->of.at[id - 1];
	/* Until it is made: a damaged file can lead in a circle. */
	if (vec_push(&t->of, &t->nothing))
		return &t->nothing;
	it = make(t, &at, alias, depth);
	if (!it->name)
		it = &t->nothing;
	t->of.at[id - 1] = it;
	return it;
}

struct dwarf_type *dwarf_type_at(struct dwarf_types *t, Dwarf_Die *die)
{
	return target_of(t, die, 0);
}

struct dwarf_type *dwarf_type_named(struct dwarf_types *t, const char *name)
{
	Dwarf_Die die;
	struct dwarf_type *it;

	if (!name[0] || !dwarf_units_named(t->units, name, &die))
		return NULL;
	it = type_of(t, &die, NULL, 0);
	return it->kind == DWARF_NOTHING ? NULL : it;
}

struct dwarf_type *dwarf_type_argument(struct dwarf_types *t, struct dwarf_type *it, int i)
{
	Dwarf_Die die;

	if (dwarf_child(&it->die, &die))
		return NULL;
	do {
		if (dwarf_tag(&die) == DW_TAG_template_type_parameter && i-- == 0)
			return dwarf_type_at(t, &die);
	} while (dwarf_units_next(&die));
	return NULL;
}

/* ------------------------------------------------------------- members -- */

/* Return: false if the member has no place, as static ones, virtual base classes and bit fields. */
static bool read_member(struct dwarf_types *t, Dwarf_Die *die, struct dwarf_member *out)
{
	const int tag = dwarf_tag(die);

	if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
		return false;
	if (dwarf_hasattr(die, DW_AT_bit_size) || dwarf_hasattr(die, DW_AT_external) ||
	    dwarf_hasattr(die, DW_AT_declaration))
		return false;
	out->offset = 0;
	/* Without the attribute: member of a union, or at the start. */
	if (dwarf_hasattr(die, DW_AT_data_member_location) &&
	    !die_number(die, DW_AT_data_member_location, &out->offset))
		return false;
	out->name = tag == DW_TAG_member ? dwarf_diename(die) : NULL;
	out->type = dwarf_type_at(t, die);
	return true;
}

static void read_members(struct dwarf_types *t, struct dwarf_type *it)
{
	VEC(struct dwarf_member) list = {0};
	struct dwarf_member m;
	Dwarf_Die die;

	if (dwarf_child(&it->die, &die))
		return;
	do {
		if (list.n == MAX_MEMBERS) {
			t->cut = true;
			break;
		}
		if (!read_member(t, &die, &m))
			continue;
		/* What is not within the structure cannot be right. */
		if (m.offset > it->size || (m.type->size && m.type->size > it->size - m.offset))
			continue;
		if (vec_push(&list, m))
			break;
	} while (dwarf_units_next(&die));
	it->member = list.at;
	it->members = (uint32_t)list.n;
}

/* "char data[]", "[0]", or as older programs write it "[1]" at the very end. */
static bool goes_on(const struct dwarf_type *it)
{
	const struct dwarf_member *last = it->members ? &it->member[it->members - 1] : NULL;

	return last && it->kind == DWARF_STRUCT && last->type->kind == DWARF_ARRAY &&
	       last->type->count <= 1 && it->members > 1 &&
	       last->offset + last->type->size + it->align > it->size;
}

/* Recursion is bounded by MAX_DEPTH: beyond that a type is followed no more. */
static void complete(struct dwarf_types *t, struct dwarf_type *it, int depth)
{
	if (it->complete || depth == MAX_DEPTH)
		return;
	it->complete = true;
	if (it->kind == DWARF_ARRAY) {
		complete(t, it->target, depth + 1);
		it->follow = it->target->follow;
		it->align = it->target->align;
		return;
	}
	if (it->kind != DWARF_STRUCT && it->kind != DWARF_UNION)
		return;
	read_members(t, it);
	for (uint32_t i = 0; i < it->members; i++) {
		struct dwarf_type *m = it->member[i].type;

		complete(t, m, depth + 1);
		it->follow |= m->follow;
		if (m->align > it->align)
			it->align = m->align;
	}
	/* DW_AT_alignment of GCC is also on alignas(). */
	(void)die_number(&it->die, DW_AT_alignment, &it->align);
	if (!it->align || it->align > 4096)
		it->align = 1;
	it->flexible = goes_on(it);
}

void dwarf_type_read(struct dwarf_types *t, struct dwarf_type *it)
{
	complete(t, it, 0);
}

/* Return: base class number @i, or NULL. */
static struct dwarf_type *find_base(struct dwarf_types *t, struct dwarf_type *it, int i,
				    uint64_t *offset)
{
	dwarf_type_complete(t, it);
	for (uint32_t k = 0; k < it->members; k++) {
		if (it->member[k].name || i--)
			continue;
		*offset += it->member[k].offset;
		return it->member[k].type;
	}
	return NULL;
}

static struct dwarf_type *find_member(struct dwarf_types *t, struct dwarf_type *it,
				      const char *name, size_t n, uint64_t *offset, int depth)
{
	struct dwarf_type *found;

	dwarf_type_complete(t, it);
	for (uint32_t i = 0; i < it->members && depth < MAX_DEPTH; i++) {
		const struct dwarf_member *m = &it->member[i];

		if (m->name && !strncmp(m->name, name, n) && !m->name[n]) {
			*offset += m->offset;
			return m->type;
		}
	}
	for (uint32_t i = 0; i < it->members && depth < MAX_DEPTH; i++) {
		const struct dwarf_member *m = &it->member[i];

		found = m->name ? NULL : find_member(t, m->type, name, n, offset, depth + 1);
		if (found) {
			*offset += m->offset;
			return found;
		}
	}
	return NULL;
}

struct dwarf_type *dwarf_type_member(struct dwarf_types *t, struct dwarf_type *it, const char *path,
				     uint64_t *offset)
{
	*offset = 0;
	while (it && *path) {
		const size_t n = strcspn(path, ".");

		if (*path == '#')
			it = find_base(t, it, path[1] - '0', offset);
		else
			it = find_member(t, it, path, n, offset, 0);
		path += n + (path[n] == '.');
	}
	return it;
}
