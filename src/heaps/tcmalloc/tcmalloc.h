/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The data structures of gperftools' tcmalloc, for the code that finds and walks them. */
#ifndef HEAPS_TCMALLOC_TCMALLOC_H
#define HEAPS_TCMALLOC_TCMALLOC_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/addr_list.h"
#include "heaps/heap.h"
#include "snapshot/image.h"

#define TC_PAGE_SHIFT 13
#define TC_LEAF_SHIFT 18 /* page number bits within a leaf */
#define TC_LEAF_BYTES (8ull << TC_LEAF_SHIFT)
#define TC_ROOT_WORDS (1ull << 17)
#define TC_CLASSES    128 /* kClassSizesMax; class 0: large */

/* struct Span: a run of pages, for one large block or for small ones of equal size. */
struct tc_span {
	uint64_t start, pages, next, prev;
	uint64_t objects;  /* list of free objects, linked by their first words */
	uint16_t refcount; /* objects not in that list */
	uint8_t class;
	uint8_t flags; /* location 2 bits, sampled, has_span_iter */
	uint32_t pad;
};
_Static_assert(sizeof(struct tc_span) == 48, "as in gperftools");

enum tc_location { TC_IN_USE, TC_FREE, TC_RETURNED };

static inline enum tc_location tc_location(const struct tc_span *s)
{
	return (enum tc_location)(s->flags & 3);
}

/* The counters of a class's central list. */
struct tc_central {
	uint64_t spans, free_objects; /* minus what the walk found */
};

/* What differs between versions. */
struct tc_layout {
	const char *version;
	uint64_t classes;    /* SizeMap.num_size_classes, from its class_array_ on */
	uint64_t cache_next; /* ThreadCache.next_; prev_ follows */
};

struct tc {
	struct image *img;
	struct heap *heap;
	const struct tc_layout *layout;
	uint64_t root;	  /* of the page map */
	uint64_t central; /* CentralFreeListPadded[TC_CLASSES] */
	uint64_t caches;  /* first ThreadCache */
	unsigned classes; /* including class 0 */
	int32_t size[TC_CLASSES];
	uint64_t pages[TC_CLASSES]; /* of a span */
	struct tc_central counted[TC_CLASSES];
	struct addr_list cached; /* objects in threads' caches, and in batches between them */
	uint64_t end;		 /* of the last span */
	uint64_t *leaf;		 /* buffer */
	struct image_view view;
};

/* Finds page map, classes, central lists and caches.  Return: 0; -ENOENT: no tcmalloc; -ENOTSUP: an
 * unknown layout; -ENOMEM. */
int tc_find(struct tc *tc);
/* Lists the objects in threads' caches and transfer caches, and copies the central lists' counters.
 * Return: 0 or -ENOMEM. */
int tc_take_caches(struct tc *tc);

#endif
