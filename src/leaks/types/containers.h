/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Containers that a typed traversal knows by the names of their members. */
#ifndef LEAKS_TYPES_CONTAINERS_H
#define LEAKS_TYPES_CONTAINERS_H

#include "leaks/types/dwarf_walk.h"

/* Return: what is known of the container type @t, to be freed by the caller; NULL if it is none. */
struct dwarf_layout *containers_layout(struct dwarf_walk *w, struct dwarf_type *t);

/* Of libstdc++ and libc++. */
extern const struct dwarf_container container_vector, container_bits, container_string,
    container_deque, container_list, container_tree, container_hash, container_shared,
    container_unique;
/* Of GLib. */
extern const struct dwarf_container container_glist, container_ghash, container_gptrarray;

#endif
