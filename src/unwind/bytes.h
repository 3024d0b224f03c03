/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads numbers of either byte order, never past the end: missing bytes read as 0 and set a
 * flag. */
#ifndef UNWIND_BYTES_H
#define UNWIND_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *p, *end;
	bool big;     /* byte order */
	bool lacking; /* a read went past the end */
};

/* Return: the next @n bytes (at most 8) as an unsigned number. */
static inline uint64_t bytes_take(struct bytes *b, unsigned n)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->p) < n) {
		b->p = b->end;
		b->lacking = true;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)b->p[i] << 8 * (b->big ? n - 1 - i : i);
	b->p += n;
	return value;
}

static inline int64_t bytes_take_signed(struct bytes *b, unsigned n)
{
	return (int64_t)(bytes_take(b, n) << (64 - 8 * n)) >> (64 - 8 * n);
}

/* DWARF 5, 7.6.  @bits: number of bits; @last: the last byte. */
static inline uint64_t bytes_leb(struct bytes *b, unsigned *bits, uint8_t *last)
{
	uint64_t value = 0;

	*bits = 0;
	do {
		*last = (uint8_t)bytes_take(b, 1);
		if (*bits < 64)
			value |= (uint64_t)(*last & 0x7f) << *bits;
		*bits += 7;
	} while (*last & 0x80);
	return value;
}

static inline uint64_t bytes_uleb(struct bytes *b)
{
	unsigned bits;
	uint8_t last;

	return bytes_leb(b, &bits, &last);
}

static inline int64_t bytes_sleb(struct bytes *b)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = bytes_leb(b, &bits, &last);

	if (last & 0x40 && bits < 64)
		value |= UINT64_MAX << bits;
	return (int64_t)value;
}

/* Return: the next @n bytes as a separate struct bytes; @b advances past them. */
static inline struct bytes bytes_part(struct bytes *b, uint64_t n)
{
	struct bytes part = *b;

	if (n > (uint64_t)(b->end - b->p)) {
		n = (uint64_t)(b->end - b->p);
		b->lacking = true;
	}
	b->p += n;
	part.end = b->p;
	return part;
}

#endif
