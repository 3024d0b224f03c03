/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the target's mappings held over time, by name. */
#ifndef REPORT_MAPS_H
#define REPORT_MAPS_H

#include <stdbool.h>
#include <stdio.h>
#include "report/model.h"

/* All that have one name: a file's path, "[heap]", "[anonymous]" ... */
struct named_maps {
	const char *name;
	uint32_t mappings;		     /* at the last look */
	uint64_t size, rss, anonymous, swap; /* bytes, at the last look */
	uint64_t first_rss, most_rss, most_ns;
};

/* The name of its mappings; never NULL. */
const char *map_name(const struct mp_map_usage *u);

/* Return: entries in *@out (the caller frees it), most resident first; 0 with *@out NULL if the
 * recording has no looks at the mappings, or when out of memory. */
uint32_t maps_by_name(const struct model *m, struct named_maps **out);

/* Return: 0 or a negative errno. */
int maps_write(const struct model *m, bool json, FILE *out);

#endif
