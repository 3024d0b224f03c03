/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/window.h"

#include <errno.h>
#include <stdlib.h>

int window_init(struct window *w, size_t size)
{
	*w = (struct window){.ring = malloc(size), .size = size};
	return w->ring ? 0 : -ENOMEM;
}

void window_free(struct window *w)
{
	free(w->ring);
	*w = (struct window){0};
}

uint8_t *window_room(const struct window *w, size_t *n)
{
	size_t at = w->end % w->size, left = w->size - (size_t)(w->end - w->begin);

	*n = left < w->size - at ? left : w->size - at;
	return w->ring + at;
}

void window_add(struct window *w, size_t n)
{
	w->end += n;
}

const uint8_t *window_at(const struct window *w, uint64_t offset, size_t *n)
{
	size_t at = offset % w->size;
	uint64_t left = w->end - offset;

	*n = left < w->size - at ? (size_t)left : w->size - at;
	return w->ring + at;
}

void window_forget(struct window *w, uint64_t offset)
{
	w->begin = offset;
}
