/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/map_pieces.h"

size_t pieces_from(const struct map_pieces *p, uint64_t address)
{
	size_t lo = 0, hi = p->at.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (p->at.at[mid].end <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int insert(struct map_pieces *p, size_t at, const struct map_piece *piece)
{
	if (vec_push(&p->at, *piece))
		return -ENOMEM;
	memmove(p->at.at + at + 1, p->at.at + at, (p->at.n - 1 - at) * sizeof(*piece));
	p->at.at[at] = *piece;
	return 0;
}

int pieces_add(struct map_pieces *p, const struct map_piece *piece)
{
	return insert(p, pieces_from(p, piece->start), piece);
}

static void remove_some(struct map_pieces *p, size_t at, size_t n)
{
	memmove(p->at.at + at, p->at.at + at + n, (p->at.n - at - n) * sizeof(p->at.at[0]));
	p->at.n -= n;
}

int pieces_cut(struct map_pieces *p, uint64_t start, uint64_t end,
	       void (*cut)(void *ctx, uint32_t map, int pieces), void *ctx)
{
	size_t i = pieces_from(p, start), whole;

	if (i < p->at.n && p->at.at[i].start < start) {
		struct map_piece rest = p->at.at[i];

		p->at.at[i++].end = start;
		if (rest.end > end) {
			rest.start = end;
			if (insert(p, i, &rest))
				return -ENOMEM;
			cut(ctx, rest.map, 1);
			return 0;
		}
		cut(ctx, rest.map, 0);
	}
	for (whole = i; whole < p->at.n && p->at.at[whole].end <= end; whole++)
		cut(ctx, p->at.at[whole].map, -1);
	if (whole > i)
		remove_some(p, i, whole - i);
	if (i < p->at.n && p->at.at[i].start < end) {
		p->at.at[i].start = end;
		cut(ctx, p->at.at[i].map, 0);
	}
	return 0;
}
