/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/containers.h"

#include <stdlib.h>

struct dwarf_layout *containers_layout(struct dwarf_walk *w, struct dwarf_type *t)
{
	static const struct dwarf_container *const kinds[] = {
	    &container_vector, &container_bits,	 &container_string,    &container_deque,
	    &container_list,   &container_tree,	 &container_hash,      &container_shared,
	    &container_unique, &container_glist, &container_gptrarray, &container_ghash,
	};

	if (t->kind != DWARF_STRUCT || !t->raw)
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct dwarf_layout l = {.is = kinds[i], .type = t}, *kept;

		if (!kinds[i]->know(w, t, &l))
			continue;
		if (!l.id)
			l.id = dwarf_name(w, "", t->name, "", NULL);
		kept = l.id ? malloc(sizeof(*kept)) : NULL;
		if (kept)
			*kept = l;
		return kept;
	}
	return NULL;
}
