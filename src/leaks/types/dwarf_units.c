/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DWARF 5, chapter 3; versions 2 to 4 have the same entries. */
#include "leaks/types/dwarf_units.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/types/cxx_type.h"
#include "lib/intern.h"
#include "lib/vec.h"

#define MAX_DEPTH     64 /* of scopes */
#define MAX_NAMED     1500000u
#define MAX_VARIABLES 1500000u
#define MAX_NAME      2048 /* bytes of a name as the compiler writes it */
#define NOT_KNOWN     UINT32_MAX
#define LOOK_AT_CLOCK 1024 /* after so many DIEs */

/* A structure that a unit defines. */
struct named {
	Dwarf_Die die;
	uint64_t size, line;
	bool ambiguous;
};

/* The module that has the debug information. */
struct owner {
	Dwarf *dwarf;
	const char *path;
};

struct dwarf_units {
	struct deadline until;
	uint32_t dies; /* since the last look at the clock */
	bool no_memory;
	struct dwarf_left_out left_out;
	VEC(struct owner) owners;
	VEC(struct dwarf_variable) variables;
	struct intern *scopes, *names, *places, *units;
	VEC(char *) scope;	 /* by id in .scopes - 1: "app::" */
	VEC(struct named) named; /* by id in .names - 1 */
	VEC(uint32_t) place;	 /* by id in .places - 1, of the structure's address: scope */
};

/* What is being read. */
struct reader {
	struct dwarf_units *u;
	uint64_t bias;
	uint32_t module;
	bool nested; /* only the scopes of structures, but also of those within others */
};

struct dwarf_units *dwarf_units_new(struct deadline until)
{
	struct dwarf_units *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->until = until;
	u->scopes = intern_new();
	u->names = intern_new();
	u->places = intern_new();
	u->units = intern_new();
	if (u->scopes && u->names && u->places && u->units)
		return u;
	dwarf_units_free(u);
	return NULL;
}

void dwarf_units_free(struct dwarf_units *u)
{
	if (!u)
		return;
	vec_for_each (&u->scope, s)
		free(*s);
	vec_free(&u->scope);
	vec_free(&u->named);
	vec_free(&u->place);
	vec_free(&u->variables);
	vec_free(&u->owners);
	intern_free(u->scopes);
	intern_free(u->names);
	intern_free(u->places);
	intern_free(u->units);
	free(u);
}

bool dwarf_units_next(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) || dwarf_dieoffset(&next) <= before)
		return false;
	*die = next;
	return true;
}

static bool late(struct dwarf_units *u)
{
	if (!u->left_out.time && ++u->dies % LOOK_AT_CLOCK == 0)
		u->left_out.time = deadline_passed(&u->until);
	return u->left_out.time || u->no_memory;
}

static bool is_structure(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_interface_type;
}

/* ------------------------------------------------------------- structures -- */

/* Return: the id of the scope called @name in @outer, from 1; 0 when out of memory. */
static uint32_t scope_id(struct dwarf_units *u, const char *outer, const char *name)
{
	char text[MAX_NAME];
	uint32_t id;
	bool fresh;
	char *copy;

	snprintf(text, sizeof(text), "%s%s%s", outer, name, *name ? "::" : "");
	id = intern_text(u->scopes, text, &fresh);
	if (id && !fresh)
		return id;
	copy = id ? strdup(text) : NULL;
	if (copy && !vec_push(&u->scope, copy))
		return id;
	free(copy);
	u->no_memory = true;
	return 0;
}

static const char *scope_text(const struct dwarf_units *u, uint32_t scope)
{
	return scope ? u->scope.at[scope - 1] : "";
}

static uint64_t die_number(Dwarf_Die *die, unsigned int at)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_formudata(dwarf_attr(die, at, &attr), &v) ? 0 : v;
}

/* Return: the entry for structures with this name, .die.addr NULL if there are none so far; NULL when
 * out of memory. */
static struct named *named_entry(struct dwarf_units *u, const char *name)
{
	const struct named none = {0};
	bool fresh;
	uint32_t id = intern_text(u->names, name, &fresh);

	if (!id || (fresh && vec_push(&u->named, none))) {
		u->no_memory = true;
		return NULL;
	}
	return &u->named.at[id - 1];
}

/* Return: where the scope of the structure @die is noted, NOT_KNOWN if it was not seen so far; NULL when
 * out of memory. */
static uint32_t *place_entry(struct dwarf_units *u, Dwarf_Die *die)
{
	bool fresh;
	uint32_t id = intern_pair(u->places, (uintptr_t)die->addr, 0, &fresh);

	if (!id || (fresh && vec_push(&u->place, NOT_KNOWN))) {
		u->no_memory = true;
		return NULL;
	}
	return &u->place.at[id - 1];
}

static void add_named(struct dwarf_units *u, Dwarf_Die *die, uint32_t scope, const char *name)
{
	const struct named it = {*die, die_number(die, DW_AT_byte_size),
				 die_number(die, DW_AT_decl_line), false};
	char text[MAX_NAME], shorter[CXX_TYPE_MAX];
	struct named *before;

	snprintf(text, sizeof(text), "%s%s", scope_text(u, scope), name);
	cxx_type_shorten(text, shorter);
	before = named_entry(u, shorter);
	if (!before)
		return;
	if (!before->die.addr)
		*before = it;
	else if (before->size != it.size || before->line != it.line)
		before->ambiguous = true;
}

static void add_structure(struct reader *r, Dwarf_Die *die, uint32_t scope)
{
	struct dwarf_units *u = r->u;
	const char *name = dwarf_diename(die);
	uint32_t *place;

	if (u->place.n >= MAX_NAMED) {
		u->left_out.number = true;
		return;
	}
	place = place_entry(u, die);
	if (!place || *place != NOT_KNOWN)
		return;
	*place = scope;
	if (name && !dwarf_hasattr(die, DW_AT_declaration))
		add_named(u, die, scope, name);
}

/* ------------------------------------------------------------- variables -- */

/* Can a location be at a fixed address, by its first operation?  Those of most variables are not,
 * and need not be decoded. */
static bool may_be_fixed(Dwarf_Die *die, Dwarf_Attribute *attr)
{
	Dwarf_Block b;

	if (!dwarf_attr(die, DW_AT_location, attr) || dwarf_formblock(attr, &b) || !b.length)
		return false;
	return b.data[0] == DW_OP_addr || b.data[0] == DW_OP_addrx ||
	       b.data[0] == DW_OP_GNU_addr_index || b.data[0] == DW_OP_constx ||
	       b.data[0] == DW_OP_GNU_const_index || b.data[0] == DW_OP_const4u ||
	       b.data[0] == DW_OP_const8u || b.data[0] == DW_OP_constu;
}

/* Is the variable at a fixed address, or in thread-local storage (DWARF 5, 2.5.1.3)? */
static bool fixed_place(Dwarf_Die *die, struct dwarf_variable *v)
{
	Dwarf_Attribute attr, indirect;
	Dwarf_Op *op;
	size_t n;

	if (!may_be_fixed(die, &attr) || dwarf_getlocation(&attr, &op, &n) || !n)
		return false;
	v->addr = op[0].number;
	v->tls = n == 2 &&
		 (op[1].atom == DW_OP_form_tls_address || op[1].atom == DW_OP_GNU_push_tls_address);
	if (v->tls && (op[0].atom == DW_OP_constx || op[0].atom == DW_OP_GNU_const_index))
		return !dwarf_getlocation_attr(&attr, &op[0], &indirect) &&
		       !dwarf_formudata(&indirect, &v->addr);
	if (v->tls)
		return op[0].atom == DW_OP_const4u || op[0].atom == DW_OP_const8u ||
		       op[0].atom == DW_OP_constu;
	if (n != 1)
		return false;
	if (op[0].atom == DW_OP_addr)
		return true;
	return (op[0].atom == DW_OP_addrx || op[0].atom == DW_OP_GNU_addr_index) &&
	       !dwarf_getlocation_attr(&attr, &op[0], &indirect) &&
	       !dwarf_formaddr(&indirect, &v->addr);
}

static void add_variable(struct reader *r, Dwarf_Die *die)
{
	struct dwarf_variable v = {.die = *die, .module = r->module};

	if (r->nested || !fixed_place(die, &v))
		return;
	/* What the linker removed has the address 0. */
	if (!v.tls && !v.addr)
		return;
	v.addr += v.tls ? 0 : r->bias;
	if (r->u->variables.n >= MAX_VARIABLES)
		r->u->left_out.number = true;
	else if (vec_push(&r->u->variables, v))
		r->u->no_memory = true;
}

/* ------------------------------------------------------------- units -- */

/* Recursion is bounded by MAX_DEPTH. */
static void read_scope(struct reader *r, Dwarf_Die *parent, uint32_t scope, int depth)
{
	const char *name;
	Dwarf_Die die;
	int tag;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		if (late(r->u))
			return;
		tag = dwarf_tag(&die);
		name = dwarf_diename(&die);
		if (tag == DW_TAG_variable) {
			add_variable(r, &die);
		} else if (tag == DW_TAG_namespace) {
			read_scope(r, &die,
				   scope_id(r->u, scope_text(r->u, scope),
					    name ? name : "(anonymous namespace)"),
				   depth + 1);
		} else if (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block) {
			read_scope(r, &die, scope, depth + 1);
		} else if (is_structure(tag)) {
			add_structure(r, &die, scope);
			if (r->nested)
				read_scope(
				    r, &die,
				    scope_id(r->u, scope_text(r->u, scope), name ? name : ""),
				    depth + 1);
		}
	} while (dwarf_units_next(&die));
}

/* C and C++ (DWARF 5, table 7.17, and later versions' numbers). */
static bool is_known_language(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* C++17 */
	case 0x2c: /* C17 */
	case 0x3a: /* C++20 */
	case 0x3b: /* C++23 */
	case 0x3e: /* C23 */
		return true;
	default:
		return false;
	}
}

static void read_unit(struct reader *r, const struct module_debug *m, Dwarf_Die *die, uint8_t type)
{
	struct dwarf_left_out *left = &r->u->left_out;
	Dwarf_Die split = {0};

	if (type == DW_UT_skeleton) {
		if (!symfile_may_split(m->file, die) ||
		    dwarf_cu_info(die->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) ||
		    !split.addr) {
			left->split++;
			return;
		}
		die = &split;
	}
	/* Parts of units and type units can lack the language. */
	if ((type == DW_UT_compile || type == DW_UT_skeleton) && !is_known_language(die) &&
	    dwarf_srclang(die) != DW_LANG_Mips_Assembler) {
		left->languages++;
		return;
	}
	if (type == DW_UT_compile || type == DW_UT_skeleton || type == DW_UT_partial ||
	    type == DW_UT_type)
		read_scope(r, die, 0, 0);
}

int dwarf_units_read(struct dwarf_units *u, const struct module_debug *m, uint32_t module,
		     const char *path)
{
	struct reader r = {u, m->bias, module, false};
	const struct owner owner = {m->dwarf, path};
	Dwarf_CU *cu = NULL, *next;
	uint8_t type;
	Dwarf_Die die;

	if (vec_push(&u->owners, owner))
		return -ENOMEM;
	while (!late(u) && !dwarf_get_units(m->dwarf, cu, &next, NULL, &type, &die, NULL)) {
		cu = next;
		read_unit(&r, m, &die, type);
	}
	return u->no_memory ? -ENOMEM : 0;
}

const struct dwarf_variable *dwarf_units_variables(const struct dwarf_units *u, size_t *n)
{
	*n = u->variables.n;
	return u->variables.at;
}

const struct dwarf_left_out *dwarf_units_left_out(const struct dwarf_units *u)
{
	return &u->left_out;
}

/* ------------------------------------------------------------- questions -- */

const char *dwarf_units_scope(struct dwarf_units *u, Dwarf_Die *die)
{
	struct reader r = {.u = u, .nested = true};
	const uint32_t *place = place_entry(u, die);
	Dwarf_Die unit;
	bool fresh;

	/* It is within another structure, or in a unit that was not read: reads the structures of
	 * its unit once. */
	if (place && *place == NOT_KNOWN && dwarf_diecu(die, &unit, NULL, NULL) &&
	    intern_pair(u->units, (uintptr_t)unit.addr, 0, &fresh) && fresh) {
		read_scope(&r, &unit, 0, 0);
		place = place_entry(u, die);
	}
	return place && *place != NOT_KNOWN ? scope_text(u, *place) : "";
}

bool dwarf_units_named(struct dwarf_units *u, const char *name, Dwarf_Die *die)
{
	const struct named *it = named_entry(u, name);

	if (!it || !it->die.addr || it->ambiguous)
		return false;
	*die = it->die;
	return true;
}

const char *dwarf_units_path(const struct dwarf_units *u, Dwarf_Die *die)
{
	const Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);

	vec_for_each (&u->owners, it) {
		if (it->dwarf == dwarf)
			return it->path;
	}
	return NULL;
}
