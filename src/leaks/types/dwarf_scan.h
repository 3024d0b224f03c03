/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The typed traversal itself. */
#ifndef LEAKS_TYPES_DWARF_SCAN_H
#define LEAKS_TYPES_DWARF_SCAN_H

#include "leaks/types/dwarf_walk.h"

/* Follows the members of the object of type @t at @addr, and what they lead to, except for less certain
 * pointers, which are followed last. */
void dwarf_scan(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t);
/* Follows the containers in the local variable of type @t at @addr, and what they lead to.  It can be not
 * initialized: its pointers are not followed. */
void dwarf_scan_local(struct dwarf_walk *w, uint64_t addr, struct dwarf_type *t);
/* Follows what waits. */
void dwarf_scan_waiting(struct dwarf_walk *w);
/* Follows the objects with a vtable that nothing led to. */
void dwarf_scan_classes(struct dwarf_walk *w);

#endif
