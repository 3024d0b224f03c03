/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heaps/free_list.h"

#include <stddef.h>
#include <string.h>

uint32_t free_list_mark(struct image *img, struct image_view *view,
			const struct free_list_area *area, uint64_t first)
{
	uint64_t bytes = area->size * area->capacity, at = first;
	const uint8_t *mem = first ? image_view(img, view, area->base, bytes) : NULL;
	uint32_t n = 0;

	while (at) {
		uint64_t off = at - area->base;

		if (at < area->base || off >= bytes || off % area->size ||
		    area->is_free[off / area->size])
			return FREE_LIST_BROKEN;
		area->is_free[off / area->size] = 1;
		n++;
		if (mem)
			memcpy(&at, mem + off, sizeof(at));
		else if (!image_word(img, at, &at))
			return FREE_LIST_BROKEN;
	}
	return n;
}
