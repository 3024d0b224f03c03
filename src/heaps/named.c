/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/named.h"

#include <stddef.h>
#include "heaps/scan.h"

/* Both have large tables in static memory, and are linked into the program or library that uses
 * them.  A module with less data is not searched. */
#define MIN_DATA (1u << 20)

/* @constant: the name of one of its statistics */
static const struct {
	const char *name, *constant;
} named[] = {
    {"PartitionAlloc", "partition_alloc/partitions"},
    {"Google's tcmalloc", "tcmalloc.per_cpu_caches_active"},
};

const char *named_find(struct image *img)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (scan_has_constant(img, named[i].constant, MIN_DATA))
			return named[i].name;
	}
	return NULL;
}
