/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which blocks are Python's objects, and which of their words are not references.
 *
 * A block with an object begins with up to four words that belong to the interpreter; pointers to the
 * object lead behind them.  The garbage collector links all containers in lists.  Such a link does not
 * keep an object: if it counted, everything would be reachable, and each object would be retained by
 * the one before it in a list.  The same holds for weak references.
 */
#ifndef LEAKS_PYTHON_PYTHON_H
#define LEAKS_PYTHON_PYTHON_H

#include "heaps/census.h"
#include "leaks/index.h"
#include "leaks/python/python_types.h"
#include "leaks/types/types.h"

struct python {
	struct python_types types;
	const struct heap_block *block;
	uint16_t *type;	  /* by block: 1 + index in types.list; 0: not an object */
	uint16_t *unused; /* by block: leaks/python/python_unused.h */
	/* Heads of the collector's lists that are in blocks: interpreters that were allocated. */
	VEC(struct heap_range) collectors; /* by address */
};

#define PYTHON_HIDDEN 5 /* most ranges in a block */

/* @c: census of @img; its blocks must stay in place.  @x: index of these.  @out: set to what is known of Python, or NULL
 * if there is none.  Needs 4 bytes a block.  Return: 0 or -ENOMEM. */
int python_take(struct python **out, struct image *img, const struct census *c,
		const struct index *x);
void python_free(struct python *p);

/* Return: the type of the object in @block, or NULL. */
static inline const struct python_type *python_type(const struct python *p, uint32_t block)
{
	return p->type[block] ? &p->types.list.at[p->type[block] - 1] : NULL;
}
/* Return: where the object in @block begins, to which others point; else the block's start. */
static inline uint64_t python_start(const struct python *p, uint32_t block)
{
	const struct python_type *t = python_type(p, block);

	return p->block[block].addr + (t ? t->before : 0);
}
/* Describes the object in @block.  Return: false, with @out unchanged, if it has none. */
static inline bool python_describe(const struct python *p, uint32_t block, struct type *out)
{
	const struct python_type *t = p ? python_type(p, block) : NULL;

	if (t)
		*out = (struct type){SHAPE_CLASS, t->name, t->owner, 0};
	return t;
}
/* Lists the parts of @block that have no references: @range, PYTHON_HIDDEN of them, by address.
 * Return: their number. */
unsigned int python_hidden(const struct python *p, uint32_t block, struct heap_range *range);

#endif
