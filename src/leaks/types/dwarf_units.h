/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The units of debug information of an image's modules: which variables have fixed places, which
 * structures have names, and in which scope a structure is. */
#ifndef LEAKS_TYPES_DWARF_UNITS_H
#define LEAKS_TYPES_DWARF_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include "leaks/modules.h"
#include "lib/deadline.h"

/* A variable with a fixed place. */
struct dwarf_variable {
	uint64_t addr; /* in memory; of a thread-local one in the thread's storage */
	uint32_t module;
	bool tls;
	Dwarf_Die die;
};

/* What was left out. */
struct dwarf_left_out {
	uint32_t split;	    /* units whose debug information is in other files */
	uint32_t languages; /* units of other languages than C and C++ */
	bool time, number;  /* limits on time, and on the number of structures and variables */
};

struct dwarf_units;

/* @until: no unit is read after it.  Return: NULL when out of memory. */
struct dwarf_units *dwarf_units_new(struct deadline until);
void dwarf_units_free(struct dwarf_units *u);
/* Reads the units of a module; @path must stay.  Return: 0 or -ENOMEM. */
int dwarf_units_read(struct dwarf_units *u, const struct module_debug *m, uint32_t module,
		     const char *path);
/* Return: the variables of all modules, with their number in *@n. */
const struct dwarf_variable *dwarf_units_variables(const struct dwarf_units *u, size_t *n);
const struct dwarf_left_out *dwarf_units_left_out(const struct dwarf_units *u);

/* Return: the scope of a structure: "app::", or "" if it has none or it is not known. */
const char *dwarf_units_scope(struct dwarf_units *u, Dwarf_Die *die);
/* Finds the definition of a structure by its name with scope, as cxx_type_shorten() writes it.  Return: false if there is none, or
 * several that differ. */
bool dwarf_units_named(struct dwarf_units *u, const char *name, Dwarf_Die *die);
/* Return: path of the module whose debug information has @die, or NULL. */
const char *dwarf_units_path(const struct dwarf_units *u, Dwarf_Die *die);
/* Return: the next of the DIEs with one parent; false at the last one, or if a damaged file would
 * lead back. */
bool dwarf_units_next(Dwarf_Die *die);

#endif
