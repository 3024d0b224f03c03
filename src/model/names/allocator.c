/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/allocator.h"

#include <string.h>
#include "lib/path.h"
#include "model/model.h"

static enum family family_by_name(const char *function)
{
	static const struct {
		const char *part;
		enum family family;
	} names[] = {
	    {"mallocx", FAMILY_JEMALLOC}, {"rallocx", FAMILY_JEMALLOC},
	    {"xallocx", FAMILY_JEMALLOC}, {"sdallocx", FAMILY_JEMALLOC},
	    {"dallocx", FAMILY_JEMALLOC}, {"_rjem_", FAMILY_JEMALLOC},
	    {"je_", FAMILY_JEMALLOC},	  {"tc_", FAMILY_TCMALLOC},
	    {"mi_", FAMILY_MIMALLOC},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(function, names[i].part, strlen(names[i].part)))
			return names[i].family;
	}
	return FAMILY_UNKNOWN;
}

static enum family family_by_module(const char *module)
{
	static const struct {
		const char *part;
		enum family family;
	} names[] = {{"jemalloc", FAMILY_JEMALLOC},
		     {"tcmalloc", FAMILY_TCMALLOC},
		     {"mimalloc", FAMILY_MIMALLOC}};

	module = path_base(module);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strstr(module, names[i].part))
			return names[i].family;
	}
	if (!strncmp(module, "libc.so.", 8) || !strncmp(module, "libc-2.", 7))
		return FAMILY_GLIBC;
	return FAMILY_UNKNOWN;
}

/* The allocator according to the hook alone: name, module, and whether its blocks have glibc's
 * chunk headers, which only glibc's blocks have. */
static enum family own_family(const struct model_hook *h)
{
	enum family f = family_by_name(h->name);

	if (f == FAMILY_UNKNOWN)
		f = family_by_module(h->module);
	return f == FAMILY_UNKNOWN && h->has_chunks ? FAMILY_GLIBC : f;
}

void model_find_allocators(struct model *m)
{
	vec_for_each (&m->facts.hooks, h)
		h->family = own_family(h);
	/* If one function of a module belongs to an allocator, for instance one linked into the
	 * program, so do the others. */
	vec_for_each (&m->facts.hooks, h) {
		vec_for_each (&m->facts.hooks, other) {
			enum family f = own_family(other);

			if (f == FAMILY_UNKNOWN || strcmp(h->module, other->module) != 0)
				continue;
			if (h->family == FAMILY_UNKNOWN || f > FAMILY_GLIBC)
				h->family = f;
		}
	}
}

enum allocator model_allocator(const struct model *m, const struct model_block *b)
{
	switch (b->hook < m->facts.hooks.n ? m->facts.hooks.at[b->hook].family : FAMILY_UNKNOWN) {
	case FAMILY_GLIBC:
		return b->flags & EV_F_MMAPPED	  ? ALLOCATOR_MMAPPED
		       : b->flags & EV_F_NON_MAIN ? ALLOCATOR_OTHER_ARENA
						  : ALLOCATOR_MAIN_ARENA;
	case FAMILY_JEMALLOC:
		return ALLOCATOR_JEMALLOC;
	case FAMILY_TCMALLOC:
		return ALLOCATOR_TCMALLOC;
	case FAMILY_MIMALLOC:
		return ALLOCATOR_MIMALLOC;
	default:
		return ALLOCATOR_OTHER;
	}
}
