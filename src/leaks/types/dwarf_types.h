/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types of C and C++ in debug information, read when something leads to them. */
#ifndef LEAKS_TYPES_DWARF_TYPES_H
#define LEAKS_TYPES_DWARF_TYPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include "leaks/types/dwarf_units.h"

enum dwarf_kind {
	DWARF_NOTHING, /* not understood */
	DWARF_VOID,
	DWARF_BASE,    /* a number */
	DWARF_POINTER, /* or a reference */
	DWARF_STRUCT,
	DWARF_UNION,
	DWARF_ARRAY,
	DWARF_FUNCTION,
};

struct dwarf_type;

struct dwarf_member {
	const char *name;	 /* NULL: a base class, or an anonymous structure */
	struct dwarf_type *type; /* never NULL */
	uint64_t offset;	 /* bytes */
};

/* A type without typedef, const and the like.  They live as long as struct dwarf_types. */
struct dwarf_type {
	enum dwarf_kind kind;
	bool complete;		     /* dwarf_type_complete() was called */
	bool follow;		     /* it has pointers in it; after dwarf_type_complete() */
	bool flexible;		     /* its last member is a flexible array; likewise */
	uint64_t size;		     /* bytes; 0: not known, or incomplete */
	uint64_t align;		     /* bytes, from 1; likewise */
	uint64_t count;		     /* elements of an array; 0: not known, or none */
	struct dwarf_type *target;   /* of a pointer or an array; never NULL for these */
	struct dwarf_member *member; /* of a structure; likewise */
	uint32_t members;
	const char *name;  /* "app::Node", "std::vector<session>", "session*"; "" none */
	const char *raw;   /* of a structure: its name as the compiler writes it, without scope */
	const char *scope; /* of a structure: "app::" or "" */
	const char *owner; /* path of the module that has it, or NULL */
	Dwarf_Die die;
	/* For those who walk the data; 0 at first. */
	void *layout;
	bool layout_known;
	uint32_t id, id_array;
};

struct dwarf_types;

/* @units: must stay.  Return: NULL when out of memory. */
struct dwarf_types *dwarf_types_new(const struct arch *arch, struct dwarf_units *units);
void dwarf_types_free(struct dwarf_types *t);
/* Were there more types than are read? */
bool dwarf_types_cut(const struct dwarf_types *t);

/* Return: the type that is the attribute DW_AT_type of @die, of kind DWARF_VOID without one.  Never NULL:
 * of kind DWARF_NOTHING if it cannot be understood, or when out of memory. */
struct dwarf_type *dwarf_type_at(struct dwarf_types *t, Dwarf_Die *die);
/* Reads the members of a structure, and of those in it. */
void dwarf_type_read(struct dwarf_types *t, struct dwarf_type *it);
static inline void dwarf_type_complete(struct dwarf_types *t, struct dwarf_type *it)
{
	if (!it->complete)
		dwarf_type_read(t, it);
}
/* Return: the definition of a structure by its name ("app::Node"), or NULL if there is none, or several
 * that differ. */
struct dwarf_type *dwarf_type_named(struct dwarf_types *t, const char *name);
/* Return: argument @i of a template's instance, of those that are types; NULL: it has fewer. */
struct dwarf_type *dwarf_type_argument(struct dwarf_types *t, struct dwarf_type *it, int i);

/* Finds the member at a path of names, such as "_M_impl._M_start", also in base classes and anonymous
 * members; "#1" is the second of the base classes.  @offset: the result's, within @it.  Return: its type, or NULL. */
struct dwarf_type *dwarf_type_member(struct dwarf_types *t, struct dwarf_type *it, const char *path,
				     uint64_t *offset);

#endif
