/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/known.h"

#include <stddef.h>
#include <string.h>

static const struct known_allocator known[] = {
    {"jemalloc", {"mallocx", "je_mallocx", "_rjem_mallocx"}, {"je_", "_rjem_"}},
    {"tcmalloc", {"tc_malloc"}, {"tc_"}},
    {"mimalloc", {"mi_malloc"}, {"mi_"}},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct known_allocator *known_by_function(const char *name)
{
	for (size_t i = 0; i < COUNT(known); i++) {
		const char *const *by = known[i].shown_by;

		for (size_t k = 0; k < COUNT(known[i].shown_by) && by[k]; k++) {
			if (!strcmp(name, by[k]))
				return &known[i];
		}
	}
	return NULL;
}

bool known_prefix(const char *name)
{
	for (size_t i = 0; i < COUNT(known); i++) {
		const char *const *prefix = known[i].prefix;

		for (size_t k = 0; k < COUNT(known[i].prefix) && prefix[k]; k++) {
			if (!strncmp(name, prefix[k], strlen(prefix[k])))
				return true;
		}
	}
	return false;
}
