/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bytes of a stream that the receiver does not have for certain: a ring of a fixed size. */
#ifndef STREAM_WINDOW_H
#define STREAM_WINDOW_H

#include <stddef.h>
#include <stdint.h>

struct window {
	uint8_t *ring;
	size_t size;
	uint64_t begin, end; /* offsets in the stream */
};

/* Return: 0 or -ENOMEM. */
int window_init(struct window *w, size_t size);
void window_free(struct window *w);

/* Return: the place for the next bytes of the stream; @n: how many there is room for, 0 if it is full. */
uint8_t *window_room(const struct window *w, size_t *n);
/* The next @n bytes were put into window_room(). */
void window_add(struct window *w, size_t n);
/* Return: the bytes at @offset, within the window; @n: how many follow each other there. */
const uint8_t *window_at(const struct window *w, uint64_t offset, size_t *n);
/* The bytes before @offset, within the window, are not needed any more. */
void window_forget(struct window *w, uint64_t offset);

#endif
