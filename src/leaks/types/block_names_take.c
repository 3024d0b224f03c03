/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include "leaks/types/block_names.h"
#include "leaks/types/dwarf_names.h"
#include "leaks/python/python_names.h"
#include "leaks/types/shapes.h"

/* ------------------------------------------------------------- classes and text -- */

/* Ids of classes to those of their names. */
struct class_ids {
	VEC(uint32_t) of;
};

static uint32_t class_name_id(struct block_names *n, struct class_ids *c, const struct type *t)
{
	if (vec_reach(&c->of, t->id))
		return 0;
	if (!c->of.at[t->id])
		c->of.at[t->id] = block_names_id(n, t->name, t->owner, NAME_VTABLE);
	return c->of.at[t->id];
}

/* Do the first bytes of a block, @size of them, look like text of eight characters or the whole of a
 * shorter one? */
static bool is_text(const struct block_names *n, const uint8_t *s, unsigned int size, uint64_t word)
{
	unsigned int length = 0;

	while (length < size && isprint(s[length]))
		length++;
	if (!length || (length < size && s[length]))
		return false;
	/* Six bytes can be an address. */
	return length == size || !image_map_at(n->img, word);
}

static int name_classes(struct block_names *n, const struct graph *g)
{
	const unsigned int size = n->img->arch->word_size;
	struct image_view view = {0};
	struct class_ids ids = {0};
	int ret = 0;

	for (uint32_t i = 0; i < g->n && !ret; i++) {
		const struct heap_block *b = &g->block[i];
		const void *p = b->size >= size ? image_view(n->img, &view, b->addr, size) : NULL;
		struct type t;

		if (!p)
			continue;
		if (types_class(n->types, arch_word(n->img->arch, p), &t)) {
			n->of[i] = (uint16_t)class_name_id(n, &ids, &t);
			ret = n->of[i] ? 0 : -ENOMEM;
		} else if (is_text(n, p, size, arch_word(n->img->arch, p))) {
			n->of[i] = BLOCK_NAMES_TEXT;
		}
	}
	image_view_free(&view);
	vec_free(&ids.of);
	return ret;
}

/* ------------------------------------------------------------- all of it -- */

int block_names_take(struct block_names *n, const struct graph *g, struct image *img,
		     struct modules *m)
{
	int ret = block_names_init(n, g, img);

	if (!ret)
		ret = name_classes(n, g);
	if (!ret)
		ret = python_names(n, g);
	if (!ret)
		ret = dwarf_names_take(n, g, img, m);
	if (!ret)
		ret = shapes_take(n, g, img, m);
	return ret ? ret : block_names_settle(n);
}
