/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained_builder.h"

#include <errno.h>
#include <string.h>

/* Of this many blocks that several roots share, the roots are searched: each search can visit all
 * edges. */
#define MAX_SHARED 8

/* Counts and notes the roots that reach the block at @place. */
static int note_sharing(struct retained_builder *b, uint32_t place)
{
	struct retained_sharing s = {.place = place};
	int64_t n = dominators_holders(&b->tree, place, s.holder, RETAINED_ROOTS);

	s.roots = n < 0 ? 0 : (uint64_t)n;
	return n < 0 || vec_push(&b->shared, s) ? -ENOMEM : 0;
}

/* Keeps the @max places that retain most, most first.  Return: their number. */
static uint32_t keep_largest(const struct retained_builder *b, uint32_t *most, uint32_t n,
			     uint32_t max, uint32_t place)
{
	uint32_t i = n;

	while (i && b->tree.bytes[most[i - 1]] < b->tree.bytes[place])
		i--;
	if (i == max)
		return n;
	n += n < max;
	memmove(&most[i + 1], &most[i], (n - 1 - i) * sizeof(*most));
	most[i] = place;
	return n;
}

/* Notes the roots of the blocks directly below @place that retain most. */
static int note_largest(struct retained_builder *b, uint32_t place)
{
	uint32_t most[MAX_SHARED], n = 0;
	int ret = 0;

	for (uint32_t c = place + 1; c < place + b->tree.count[place]; c += b->tree.count[c]) {
		if (is_block(b, c))
			n = keep_largest(b, most, n, MAX_SHARED, c);
	}
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = note_sharing(b, most[i]);
	return ret;
}

int retained_note_shared(struct retained_builder *b)
{
	int ret = 0;

	for (uint32_t p = 0; p < b->tree.n && !ret;
	     p += retained_is_group(b, p) || !is_block(b, p) ? 1 : b->tree.count[p]) {
		if (retained_is_group(b, p))
			ret = note_largest(b, p);
	}
	return ret;
}
