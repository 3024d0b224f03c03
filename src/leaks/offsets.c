/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/offsets.h"

#include <string.h>

#define LARGEST	   64 /* bytes that an allocator reserves for a structure of 24 */
#define MOST_REFS  (1 << 24)
#define MOST_ELTS  4096
#define MOST_PAGES 4352 /* of 256 characters each, in Unicode */
#define SPARE	   128	/* bytes: an array of one element has room for eight */

/* FcPattern is {int num, size; intptr_t elements; int refs}, FcCharSet is {int refs, num; intptr_t
 * leaves, numbers}.  Offsets are counted from the structure's start, those of leaves from that of
 * their array. */
struct header {
	int32_t number[2];
	uint64_t word[2];
};

bool offsets_used(const struct image *img)
{
	vec_for_each (&img->maps, m) {
		if (!strncmp(image_map_name(m), "libfontconfig.so", strlen("libfontconfig.so")))
			return true;
	}
	return false;
}

/* Return: @addr + @offset; an offset of 32 bits is not extended. */
static uint64_t moved(const struct arch *arch, uint64_t addr, uint64_t offset)
{
	return arch->word_size == 4 ? (uint32_t)(addr + offset) : addr + offset;
}

/* Return: true if @addr is the start of a live block for an array of @bytes, which can have grown to
 * twice what is used. */
static bool is_array(const struct graph *g, uint64_t addr, uint64_t bytes)
{
	const uint32_t b = index_find(&g->index, addr);

	return b != INDEX_NONE && g->block[b].addr == addr && g->block[b].size >= bytes &&
	       g->block[b].size <= 2 * bytes + SPARE;
}

static void scan_pattern(struct scan *s, uint32_t block, const struct header *h)
{
	const struct arch *arch = s->graph->arch;
	const int32_t num = h->number[0], size = h->number[1], refs = (int32_t)h->word[1];
	const uint64_t elements = moved(arch, s->graph->block[block].addr, h->word[0]);

	if (num >= 0 && num <= size && size > 0 && size <= MOST_ELTS && refs > 0 &&
	    refs <= MOST_REFS &&
	    is_array(s->graph, elements, 2ull * arch->word_size * (uint32_t)size))
		scan_value(s, elements, 0, block);
}

static void scan_leaves(struct scan *s, struct image *img, uint32_t block, uint64_t leaves,
			uint32_t n)
{
	const struct arch *arch = s->graph->arch;
	uint64_t offset;

	for (uint32_t i = 0; i < n; i++) {
		if (image_word(img, leaves + (uint64_t)i * arch->word_size, &offset))
			scan_value(s, moved(arch, leaves, offset), 0, block);
	}
}

static void scan_charset(struct scan *s, struct image *img, uint32_t block, const struct header *h)
{
	const struct arch *arch = s->graph->arch;
	const uint64_t start = s->graph->block[block].addr;
	const uint64_t leaves = moved(arch, start, h->word[0]);
	const uint64_t numbers = moved(arch, start, h->word[1]);
	const int32_t refs = h->number[0], num = h->number[1];

	if (refs <= 0 || refs > MOST_REFS || num <= 0 || num > MOST_PAGES ||
	    !is_array(s->graph, leaves, (uint64_t)arch->word_size * (uint32_t)num) ||
	    !is_array(s->graph, numbers, 2ull * (uint32_t)num))
		return;
	scan_value(s, leaves, 0, block);
	scan_value(s, numbers, 0, block);
	scan_leaves(s, img, block, leaves, (uint32_t)num);
}

void offsets_scan(struct scan *s, struct image *img, uint32_t block, const uint8_t *bytes, size_t n)
{
	const struct arch *arch = s->graph->arch;
	struct header h;

	if (n > LARGEST || n < sizeof(h.number) + 2ull * arch->word_size)
		return;
	memcpy(h.number, bytes, sizeof(h.number));
	for (unsigned int i = 0; i < 2; i++)
		h.word[i] = arch_word(arch, bytes + sizeof(h.number) + i * arch->word_size);
	scan_pattern(s, block, &h);
	scan_charset(s, img, block, &h);
}
