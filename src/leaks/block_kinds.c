/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/block_kinds.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, TEXT, FIRST_CLASS };

/* Do the first bytes of a block, @n of them, look like text of eight characters or the whole of a
 * shorter one? */
static bool is_text(const struct block_kinds *k, const uint8_t *s, unsigned int n, uint64_t word)
{
	unsigned int length = 0;

	while (length < n && isprint(s[length]))
		length++;
	if (!length || (length < n && s[length]))
		return false;
	/* Six bytes can be an address. */
	return length == n || !image_map_at(k->img, word);
}

static uint16_t label_of(struct block_kinds *k, const void *first)
{
	const struct arch *arch = k->img->arch;
	uint64_t word = arch_word(arch, first);
	struct type t;

	if (types_class(k->types, word, &t))
		return t.id < UINT16_MAX - FIRST_CLASS ? (uint16_t)(FIRST_CLASS + t.id) : PLAIN;
	return is_text(k, first, arch->word_size, word) ? TEXT : PLAIN;
}

int block_kinds_take(struct block_kinds *k, const struct graph *g, struct image *img)
{
	const unsigned int word = img->arch->word_size;
	struct image_view view = {0};

	*k = (struct block_kinds){.img = img, .block = g->block, .types = types_new(img)};
	k->label = calloc(g->n + 1ull, sizeof(*k->label));
	if (!k->types || !k->label)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct heap_block *b = &g->block[i];
		const void *p = b->size >= word ? image_view(img, &view, b->addr, word) : NULL;

		if (p)
			k->label[i] = label_of(k, p);
	}
	image_view_free(&view);
	return 0;
}

void block_kinds_free(struct block_kinds *k)
{
	types_free(k->types);
	free(k->label);
	memset(k, 0, sizeof(*k));
}

uint64_t block_kinds_key(const struct block_kinds *k, uint32_t block)
{
	const uint16_t label = k->label[block];

	return label >= FIRST_CLASS ? 1ull << 63 | label
				    : (k->block[block].size << 1 | (label == TEXT)) & ~(1ull << 63);
}

void block_kinds_type(const struct block_kinds *k, const struct heap_block *b, struct type *out)
{
	_Alignas(8) char buf[256];
	size_t n =
	    image_read(k->img, b->addr, buf, b->size < sizeof(buf) ? (size_t)b->size : sizeof(buf));

	types_of(k->types, buf, n, out);
}
