/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files that find containers by shape (shapes.h).
 *
 * A kind is the blocks of one size, or of one name.  A slot is a place in the blocks of a kind (an
 * offset) where pointers to other blocks of that kind are, all to the same place in these.
 *
 * - shape_kinds.c: the kinds, and blocks that might be arrays of pointers: one pass over all edges
 *
 * - shape_slots.c: finds the slots in a sample of each kind
 *
 * - shape_links.c: reads the slots of all blocks, and sums up how they agree
 *
 * - shape_shared.c: chooses where several blocks lead to one
 *
 * - shape_roles.c: what each slot is: next, previous, child, parent
 *
 * - shape_chains.c, shape_trees.c, shape_wide.c, shape_tables.c: the containers
 *
 * - shape_heads.c: which word leads to each
 *
 * - shape.c: what several of these need
 */
#ifndef LEAKS_TYPES_SHAPE_H
#define LEAKS_TYPES_SHAPE_H

#include "leaks/types/shapes.h"

#define SHAPE_SLOTS   6
#define SHAPE_OFFSETS 1024 /* slots are in the first bytes of a block */
#define SHAPE_SAMPLE  128  /* blocks */
#define SHAPE_FOREIGN (1u << 31)

enum shape_role {
	ROLE_NONE,
	ROLE_NEXT, /* .partner leads back */
	ROLE_PREVIOUS,
	ROLE_SINGLE, /* next, without a way back */
	ROLE_CHILD,
	ROLE_PARENT,
};

struct shape_slot {
	uint32_t offset; /* in the block that has it */
	uint32_t delta;	 /* in the block that it leads to */
	bool many;	 /* several blocks can lead to one, as from children to a parent */
	bool off;	 /* several lead to one, but should not */
	bool rest;	 /* SINGLE: only of blocks that .partner's chains do not have */
	uint32_t links, repeated, foreign; /* foreign: to blocks of another kind */
	/* By slot q, of all blocks: how often q leads back; how often a block has both; how often
	 * both lead to the same block, from whichever; how often a block that this one leads to
	 * has q. */
	uint32_t inverse[SHAPE_SLOTS], both[SHAPE_SLOTS], common[SHAPE_SLOTS], onward[SHAPE_SLOTS];
	enum shape_role role;
	uint8_t partner; /* slot: of NEXT the one that leads back; of CHILD the tree's first one */
	struct {
		uint64_t blocks, in_longer, torn; /* .in_longer: of 4 blocks and more */
		uint32_t count, longest, longer;
	} chains; /* .torn: chains that continue in a block of another kind */
	/* Ids: of blocks, of lists or trees, of blocks of hash tables */
	uint32_t name, container, hashed;
};

/* A kind whose blocks refer to each other. */
struct shape_nodes {
	uint8_t n;
	bool wide; /* arrays of pointers to each other: .n is 0, and slot 0 has the sums of trees */
	struct shape_slot slot[SHAPE_SLOTS];
};

struct shape_sample {
	uint32_t n, step, skip;
	uint32_t block[SHAPE_SAMPLE];
};

struct shape_kind {
	uint64_t size;		     /* of each block; 0: they differ */
	uint32_t name;		     /* id, or 0 */
	uint32_t blocks, linked;     /* linked: with a pointer to another one */
	uint32_t odd;		     /* pointers to blocks that are a bit larger: shape_odd() */
	uint32_t varied;	     /* blocks of other sizes that were taken into the kind */
	struct shape_sample *sample; /* of these */
	struct shape_nodes *nodes;
};

/* Together, so that they cost one cache miss. */
struct shape_block {
	uint16_t kind; /* 0: none */
	uint8_t
	    mark; /* bit of each slot that leads to it from another block; 0x80: see shape_links.c */
	uint8_t done; /* the same of each slot whose chain or tree it is in */
};

/* A block most of whose pointers lead to blocks of one kind: a candidate. */
struct shape_array {
	uint32_t block;
	uint16_t kind; /* of the blocks that they lead to */
};

struct shape_chain {
	uint64_t bytes;
	uint32_t head, tail, length; /* blocks; their number */
	uint32_t beyond;	     /* 1 + block of another kind that follows; 0: none */
	uint16_t kind;
	uint8_t slot;
	bool taken; /* part of a hash table */
	bool ring;
};

/* Why a block of another size might be of the same type. */
enum shape_why {
	ODD_LARGER, /* it is a bit larger: shape_odd() */
	ODD_PLACE,  /* blocks of its kind have a slot at the same place */
	ODD_FEW, /* few of the pointers lead to blocks of other sizes, as if the type's size varied */
};

/* A pointer in slot .slot of block .from, of kind .kind, to a block of another size. */
struct shape_odd {
	uint32_t from, to;
	uint16_t kind;
	uint8_t slot, why;
};

/* A block that slot .slot of several blocks leads to. */
struct shape_shared {
	uint32_t to;
	uint8_t slot;
};

/* A container whose place is not known yet. */
struct shape_found {
	struct container is;
	uint32_t block[2];   /* its ends; equal if there is one */
	uint32_t from;	     /* best block that leads to one, or INDEX_NONE */
	uint8_t rank, which; /* of the best way so far; to which end */
};

#define SHAPE_READS (1u << 20)

struct shapes {
	struct block_names *n;
	const struct graph *g;
	struct image *img;
	struct modules *m;
	uint32_t reads;		   /* single words that may still be read */
	struct shape_block *block; /* by block */
	/* By slot, by block: 0: leads to no block; 1 + block of the same kind; SHAPE_FOREIGN +
	 * another block.  When the chains of a slot are known, 1 + number of the chain. */
	uint32_t *link[SHAPE_SLOTS];
	VEC(struct shape_kind) kinds; /* 0 is unused */
	VEC(struct shape_odd) odd;
	VEC(struct shape_shared) shared; /* some more than once */
	VEC(struct shape_array) arrays;
	VEC(struct shape_chain) chains;
	VEC(struct shape_found) found;
};

int shape_kinds(struct shapes *s);
int shape_slots(struct shapes *s);
int shape_links(struct shapes *s);
int shape_shared(struct shapes *s);
void shape_roles(struct shapes *s);
/* Adds a chain, or tree, to .chains and to the sums of its slot.  Return: 0 or -ENOMEM. */
int shape_chain(struct shapes *s, const struct shape_chain *c);
/* Takes a chain out of the sums. */
void shape_forget(struct shape_slot *slot, const struct shape_chain *c);
/* Are the chains, or trees, of this slot so long that they are not by chance? */
bool shape_are_long(const struct shape_slot *slot);
/* Finds the chains; then, when tables have taken theirs, adds them as lists. */
int shape_chains(struct shapes *s);
int shape_lists(struct shapes *s, enum shape_role role);
int shape_trees(struct shapes *s);
/* Trees of blocks that have arrays of children: radix trees, B-trees. */
int shape_wide_trees(struct shapes *s);
int shape_tables(struct shapes *s);
/* Adds the containers in .found, with the words that lead to them. */
int shape_heads(struct shapes *s);

/* Adds a container: at once if it is small or its place is known, else to .found, with its ends.
 * Return: 0 or -ENOMEM. */
int shape_add(struct shapes *s, const struct container *c, uint32_t head, uint32_t tail);
/* Return: the id of @what with the kind's name or size in place of %s; 0 when out of memory. */
uint32_t shape_id(struct shapes *s, const char *what, uint16_t kind);
/* Return: as shape_id(), of a name for the blocks: "48-byte " and @what. */
uint32_t shape_node_id(struct shapes *s, const char *what, uint16_t kind);
/* Does the block have a name by shape? */
static inline bool shape_named(const struct shapes *s, uint32_t block)
{
	const struct block_name *name = block_names_of(s->n, block);

	return name && name->source == NAME_SHAPE;
}

static inline struct shape_slot *shape_slot_of(const struct shapes *s, uint16_t kind, uint8_t slot)
{
	return &s->kinds.at[kind].nodes->slot[slot];
}
static inline const struct shape_nodes *shape_nodes_of(const struct shapes *s, uint32_t block)
{
	return s->kinds.at[s->block[block].kind].nodes;
}
/* glibc gives a block up to two words more than others of its type, if it would have a remainder that is
 * too small for a block.  Can @block be such a one of @kind?  Its sizes are odd numbers of words. */
static inline bool shape_odd(const struct shapes *s, uint16_t kind, uint32_t block)
{
	const uint64_t size = s->g->block[block].size, more = size - s->kinds.at[kind].size;
	const unsigned int word = s->g->arch->word_size;

	return s->block[block].kind != kind && more <= 2 * word && size % (2 * word) == word &&
	       !s->kinds.at[kind].name && !block_names_has(s->n, block);
}
/* Has @block the size of @kind, whose blocks have no name, but has one?  An old value in a variable can
 * give a node a wrong name. */
static inline bool shape_misnamed(const struct shapes *s, uint16_t kind, uint32_t block)
{
	return s->block[block].kind && s->block[block].kind != kind && !s->kinds.at[kind].name &&
	       s->g->block[block].size == s->kinds.at[kind].size;
}
/* Return: the block of the same kind that slot @p of @block leads to, or INDEX_NONE. */
static inline uint32_t shape_next(const struct shapes *s, int p, uint32_t block)
{
	uint32_t to = s->link[p][block];

	return to && !(to & SHAPE_FOREIGN) ? to - 1 : INDEX_NONE;
}

#endif
