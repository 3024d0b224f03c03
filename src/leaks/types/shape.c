/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ID_TEXT 512
#define LONGER	    4  /* blocks of a chain that is one hardly by chance */
#define LONGEST	    8  /* a slot has at least one chain of so many blocks, */
#define SEVERAL	    16 /* or so many longer ones */

int shape_chain(struct shapes *s, const struct shape_chain *c)
{
	struct shape_slot *slot = &s->kinds.at[c->kind].nodes->slot[c->slot];

	slot->chains.count++;
	slot->chains.blocks += c->length;
	if (c->length >= LONGER) {
		slot->chains.longer++;
		slot->chains.in_longer += c->length;
	}
	if (c->length > slot->chains.longest)
		slot->chains.longest = c->length;
	return vec_push(&s->chains, *c);
}

void shape_forget(struct shape_slot *slot, const struct shape_chain *c)
{
	slot->chains.count--;
	slot->chains.blocks -= c->length;
	slot->chains.longer -= c->length >= LONGER;
	slot->chains.in_longer -= c->length >= LONGER ? c->length : 0;
}

bool shape_are_long(const struct shape_slot *slot)
{
	return slot->chains.in_longer * 2 >= slot->chains.blocks &&
	       slot->chains.torn * 20 <= slot->chains.blocks &&
	       (slot->chains.longest >= LONGEST || slot->chains.longer >= SEVERAL);
}

/* "48-byte "; "" if the blocks differ in size. */
static void put_size(const struct shapes *s, uint16_t kind, char *to, size_t size)
{
	const struct shape_kind *k = &s->kinds.at[kind];

	to[0] = 0;
	if (k->size && k->varied * 100ull < k->blocks)
		snprintf(to, size, "%" PRIu64 "-byte ", k->size);
}

uint32_t shape_id(struct shapes *s, const char *what, uint16_t kind)
{
	const struct shape_kind *k = &s->kinds.at[kind];
	const char *gap = strstr(what, "%s");
	char text[MAX_ID_TEXT], size[32], blocks[64];

	put_size(s, kind, size, sizeof(size));
	if (size[0])
		snprintf(blocks, sizeof(blocks), "%sblocks", size);
	else
		snprintf(blocks, sizeof(blocks), "blocks of %" PRIu64 " bytes and other sizes",
			 k->size);
	snprintf(text, sizeof(text), "%.*s%s", (int)(gap - what), what,
		 k->name ? s->n->list.at[k->name - 1].text : blocks);
	return block_names_id(s->n, text, NULL, NAME_SHAPE);
}

uint32_t shape_node_id(struct shapes *s, const char *what, uint16_t kind)
{
	char text[MAX_ID_TEXT], size[32];

	put_size(s, kind, size, sizeof(size));
	snprintf(text, sizeof(text), "%s%s", size, what);
	return block_names_id(s->n, text, NULL, NAME_SHAPE);
}

int shape_add(struct shapes *s, const struct container *c, uint32_t head, uint32_t tail)
{
	const struct shape_found f = {.is = *c, .block = {head, tail}, .from = INDEX_NONE};

	if (c->addr ||
	    (c->bytes < BLOCK_NAMES_LEAST_BYTES && c->elements < BLOCK_NAMES_LEAST_ELEMENTS))
		return block_names_container(s->n, c);
	return vec_push(&s->found, f);
}
