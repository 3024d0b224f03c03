/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the blocks are: a name for each block whose type is known, and the containers that they
 * form.  Several sources give names, the most certain first; a block keeps the first name it gets:
 *
 * - block_names_take.c: the class of a C++ object, by its vtable (types.h)
 *
 * - dwarf_names.h: debug information of the variable or member that leads to the block.  It gives control
 *   blocks of std::shared_ptr another name than that of their class.
 *
 * - the sources that block_names_take() calls after that, each in a file of its own; the last is
 *   shapes.h
 *
 * A source calls block_names_id() for each name, block_names_set() for each block, and block_names_container() for
 * each container.
 */
#ifndef LEAKS_TYPES_BLOCK_NAMES_H
#define LEAKS_TYPES_BLOCK_NAMES_H

#include <stdbool.h>
#include "leaks/graph.h"
#include "leaks/modules.h"
#include "leaks/types/types.h"

/* Where a name comes from. */
enum name_source {
	NAME_NONE,
	NAME_VTABLE,
	NAME_OBJECT, /* the object refers to its type itself, as in Python */
	NAME_DWARF,  /* debug information of the variable or member that leads to it */
	NAME_STACK,  /* the stack that allocated it, in a recording */
	NAME_SHAPE,  /* how blocks of this size refer to each other */
};

/* Sums of the containers with one name. */
struct container_sum {
	uint64_t count;	   /* containers */
	uint64_t elements; /* in them */
	uint64_t blocks;   /* that only implement them: arrays, nodes, tables */
	uint64_t bytes;	   /* of these blocks, usable */
	uint64_t unused;   /* of these bytes: capacity without an element */
	uint64_t buckets;  /* of hash tables; else 0 */
};

struct block_name {
	char *text;	   /* "app::Node", "node of std::map<int, session>" */
	const char *owner; /* file that has the type, or NULL; valid as long as the image */
	enum name_source source;
	struct container_sum sum;
};

struct container {
	uint32_t name;	/* id of "std::vector<session>", "doubly linked list of 48-byte blocks" */
	uint64_t addr;	/* of its object, in a variable, on a stack or in a block; if the object is
			 * not known the word that has the address of its first block; 0: none */
	uint64_t first; /* address of its array, table or first node; 0: none */
	uint64_t elements, blocks, bytes, unused, buckets; /* as in struct container_sum */
};

/* The declared type of a variable. */
struct variable_type {
	uint64_t addr;
	uint32_t name; /* id */
};

/* Where a container can be found: at its object, and at its first block. */
struct container_place {
	uint64_t addr;
	uint32_t container; /* index */
};

/* For the user: what the sources left out. */
struct block_notes {
	VEC(char *) list;
};

struct block_names {
	struct image *img;
	const struct heap_block *block;
	struct types *types;
	uint16_t *of; /* by block: id, BLOCK_NAMES_TEXT, or 0 */
	VEC(struct block_name) list;
	struct intern *texts;
	/* The larger ones, most bytes first.  The sums in .list are of all. */
	VEC(struct container) containers;
	VEC(struct container_place) places;  /* by address */
	VEC(struct variable_type) variables; /* by address */
	struct block_notes notes;
};

/* In .of: the block has no name, but looks like text. */
#define BLOCK_NAMES_TEXT UINT16_MAX
/* The last id; names beyond share it. */
#define BLOCK_NAMES_MOST (UINT16_MAX - 1)
/* Containers with fewer bytes, or elements, are only in the sums. */
#define BLOCK_NAMES_LEAST_BYTES	   1024
#define BLOCK_NAMES_LEAST_ELEMENTS 16

/**
 * block_names_take() - find out what the blocks of @g are
 * @g: from graph_take(); with its edges and its index
 * @m: of @img; needed only during the call
 * Needs 2 bytes a block.
 * Return: 0 or -ENOMEM.
 */
int block_names_take(struct block_names *n, const struct graph *g, struct image *img,
		     struct modules *m);
void block_names_free(struct block_names *n);

/* ------------------------------------------------------------- for block_names_take() -- */

/* Makes room for the names of all blocks of @g.  Return: 0 or -ENOMEM. */
int block_names_init(struct block_names *n, const struct graph *g, struct image *img);
/* Sorts what the sources have added.  Return: 0 or -ENOMEM. */
int block_names_settle(struct block_names *n);

/* ------------------------------------------------------------- for sources -- */

/* Return: the id of a name, up to BLOCK_NAMES_MOST, equal for equal arguments; 0 when out of memory.
 * @text is copied. */
uint32_t block_names_id(struct block_names *n, const char *text, const char *owner,
			enum name_source source);
/* Is the block already named? */
static inline bool block_names_has(const struct block_names *n, uint32_t block)
{
	return n->of[block] && n->of[block] != BLOCK_NAMES_TEXT;
}
/* Names a block unless it has a name. */
static inline void block_names_set(struct block_names *n, uint32_t block, uint32_t id)
{
	if (!block_names_has(n, block))
		n->of[block] = (uint16_t)id;
}
/* Adds a container.  Return: 0 or -ENOMEM. */
int block_names_container(struct block_names *n, const struct container *c);
/* Adds a note for the user, without a newline.  Return: 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int block_names_note(struct block_names *n,
							   const char *format, ...);
/* Notes the declared type of the variable at @addr.  Return: 0 or -ENOMEM. */
int block_names_variable(struct block_names *n, uint64_t addr, uint32_t id);

/* ------------------------------------------------------------- for reports -- */

/* Return: the block's name, or NULL.  Valid until block_names_free(). */
static inline const struct block_name *block_names_of(const struct block_names *n, uint32_t block)
{
	return block_names_has(n, block) ? &n->list.at[n->of[block] - 1] : NULL;
}
#define BLOCK_NAMES_KEY_NONE UINT64_MAX /* the key of no block */
/* Return: a number that blocks of one kind have in common: of the same name; or without one, of the
 * same size, and both text or both not. */
uint64_t block_names_key(const struct block_names *n, uint32_t block);
/* Fetches what block_names_key() will need. */
static inline void block_names_fetch(const struct block_names *n, uint32_t block)
{
	__builtin_prefetch(&n->of[block]);
	__builtin_prefetch(&n->block[block]);
}
/* Describes a block: by its name, or by its bytes (types.h).  Return: the source of its name. */
enum name_source block_names_type(const struct block_names *n, uint32_t block, struct type *out);
/* Return: the declared type of the variable at @addr, or NULL. */
const struct block_name *block_names_variable_type(const struct block_names *n, uint64_t addr);
/* Return: the largest of the containers whose object, or first block, is in [@addr, @addr + @size),
 * or NULL. */
const struct container *block_names_container_in(const struct block_names *n, uint64_t addr,
						 uint64_t size);
/* Takes the notes out of @n, to be freed with block_notes_free(). */
struct block_notes block_names_take_notes(struct block_names *n);
void block_notes_free(struct block_notes *notes);
/* Return: "vtable", "dwarf", ...; NULL for NAME_NONE. */
const char *name_source_text(enum name_source source);

#endif
