/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <inttypes.h>
#include "heaps/mimalloc/mimalloc.h"
#include "lib/human.h"

void mi_mark_lists(struct image *img, struct image_view *view, struct heap *heap,
		   const struct free_list_area *area, const struct mi_lists *lists)
{
	uint32_t mine = free_list_mark(img, view, area, lists->free);
	uint32_t local = free_list_mark(img, view, area, lists->local_free);
	uint32_t others = free_list_mark(img, view, area, lists->thread_free);

	if (mine == FREE_LIST_BROKEN || local == FREE_LIST_BROKEN || others == FREE_LIST_BROKEN) {
		heap_damage(heap, area->base,
			    "page of blocks of %" PRIu64 ": a free list is broken", area->size);
		heap_doubt(heap, "a page's free list is broken");
	} else if (lists->used + mine + local != lists->capacity) {
		heap_doubt(heap, "page 0x%" PRIx64 ": %u block%s in use, its counter says %u",
			   area->base, lists->capacity - mine - local,
			   plural(lists->capacity - mine - local), lists->used);
	}
}
