/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The steps of retained_take(): what they work on, and the functions that they share. */
#ifndef LEAKS_RETAINED_RETAINED_BUILDER_H
#define LEAKS_RETAINED_RETAINED_BUILDER_H

#include "leaks/retained/dominators.h"
#include "leaks/retained/holders.h"
#include "leaks/retained/retained.h"

/* The roots of a block that several of them share. */
struct retained_sharing {
	uint32_t place;
	uint64_t roots;
	uint32_t holder[RETAINED_ROOTS];
};

/* Blocks, or holders, by their places in the dominator tree. */
struct retained_places {
	VEC(uint32_t) list;
};

/* Blocks of one kind below one line. */
struct retained_group {
	uint64_t key, bytes, exact, blocks, count, own;
	uint32_t sample; /* place of the block that retains most */
	bool kept;
	struct retained_places members;
};

/* Everything until the lines are made. */
struct retained_builder {
	struct retained *r;
	const struct retained_options *o;
	struct image *img;
	struct graph graph;
	struct holders holders;
	struct dominators tree;
	struct modules *modules;
	struct block_names names;
	VEC(struct retained_sharing) shared;
};

static inline bool is_block(const struct retained_builder *b, uint32_t place)
{
	return b->tree.node[place] < b->tree.blocks;
}

static inline const struct heap_block *block_at(const struct retained_builder *b, uint32_t place)
{
	return &b->graph.block[b->tree.node[place]];
}

/* Return: an empty line, or NULL when out of memory. */
struct retained_line *retained_line_new(enum retained_kind kind);
/* Frees @l with its children; NULL: does nothing. */
void retained_line_free(struct retained_line *l);
/* Inserts @l among the children of @parent, most bytes first, the rest last. */
void retained_line_insert(struct retained_line *parent, struct retained_line *l);
/* Notes the container that is in [@addr, @addr + @size).  Return: 0 or -ENOMEM. */
int retained_note_container(const struct retained_builder *b, struct retained_line *l,
			    uint64_t addr, uint64_t size);

/* Sets what @l tells of the block at @place: its type, address, size, container and roots.
 * Return: 0 or -ENOMEM. */
int retained_describe(struct retained_builder *b, struct retained_line *l, uint32_t place);
/* Adds the line of @g below @parent, with the lines below it.  @depth: of the line, from 0 for a root
 * or what was asked for.  Return: 0 or -ENOMEM. */
int retained_add_group(struct retained_builder *b, struct retained_line *parent,
		       struct retained_group *g, uint32_t depth);
/* Adds the lines below @l, whose blocks are @above, of the kind @own (block_names_key()).  @above is
 * freed.  @depth: of @l, as for retained_add_group().  Return: 0 or -ENOMEM. */
int retained_add_lines(struct retained_builder *b, struct retained_line *l,
		       struct retained_places *above, uint64_t own, uint32_t depth);

/* Return: the number of blocks in a subtree. */
uint64_t retained_blocks_in(const struct retained_builder *b, uint32_t place);
/* Return: whether the holder at @place is one of others, such as a file of its variables. */
bool retained_is_group(const struct retained_builder *b, uint32_t place);
/* Sets what @l tells of a holder.  Return: 0 or -ENOMEM. */
int retained_name_holder(const struct retained_builder *b, struct retained_line *l,
			 uint32_t holder);
/* Adds a line of what one root keeps; with @shared, of the blocks directly below @place, which
 * several of the roots below it share.  Return: 0 or -ENOMEM. */
int retained_add_root(struct retained_builder *b, uint32_t place, bool shared);
/* Adds the lines of the roots that keep most; the others become one line.  Return: 0 or -ENOMEM. */
int retained_add_roots(struct retained_builder *b);

/* Notes the roots of the largest blocks that several roots share.  To be called before
 * dominators_settle().  Return: 0 or -ENOMEM. */
int retained_note_shared(struct retained_builder *b);

/* Adds the line of what @b->o->of names, and the path to it.  Return: 0; -ENOENT, with @err, if
 * there is nothing of this name; -ENOMEM. */
int retained_add_asked(struct retained_builder *b, struct mp_err *err);

#endif
