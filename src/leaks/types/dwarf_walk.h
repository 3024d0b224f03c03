/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The state of a typed traversal, and what containers need of it.  A block is claimed once, by the
 * first pointer whose type fits.  Claimed blocks are pushed on a stack until they are scanned.
 */
#ifndef LEAKS_TYPES_DWARF_WALK_H
#define LEAKS_TYPES_DWARF_WALK_H

#include "leaks/types/block_names.h"
#include "leaks/types/dwarf_memory.h"
#include "leaks/types/dwarf_types.h"
#include "lib/bitmap.h"

struct dwarf_walk;
struct dwarf_layout;

/* A kind of container. */
struct dwarf_container {
	/* Fills @l if @t is such a container.  Return: whether it is. */
	bool (*know)(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l);
	/* Takes the container at @addr.  Return: false: its members are to be followed, too. */
	bool (*take)(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l);
	/* Instead of take(), for what programs have only the address of: @at is the word with the
	 * address, or 0. */
	void (*take_at)(struct dwarf_walk *w, uint64_t at, uint64_t addr,
			const struct dwarf_layout *l);
};

/* What is known of a container's type. */
struct dwarf_layout {
	const struct dwarf_container *is;
	struct dwarf_type *type, *value; /* value: of its elements */
	uint64_t at[10];		 /* offsets; the kind says of what */
	uint64_t value_offset, node_size;
	uint64_t size; /* of an element */
	bool flag;
	uint32_t id, id_of[3]; /* names: of the container, of its blocks */
};

/* What waits to be followed: elements of @form's type in a block. */
struct dwarf_item {
	uint32_t block, form, from, n;
};

struct dwarf_form {
	struct dwarf_type *type;
	uint64_t offset; /* of the first element */
};

struct dwarf_walk {
	struct block_names *names;
	const struct graph *g;
	struct image *img;
	struct dwarf_types *types;
	struct dwarf_memory *memory;
	unsigned int word;
	uint64_t *claimed, *waiting; /* bitmaps, by block */
	VEC(struct dwarf_item) now;
	VEC(struct dwarf_item) later; /* less certain ones */
	VEC(struct dwarf_form) forms;
	struct intern *form_ids, *counted;
	VEC(struct dwarf_type *) classes; /* by id of the name: NULL: not looked up so far */
	struct dwarf_type no_class;	  /* looked up, but not found */
	struct deadline until;
	uint32_t steps;
	bool late, no_memory;
	bool only_checked; /* on stacks: only containers that are checked, no mere pointers */
	uint64_t broken;   /* containers that contradict themselves */
};

/* Return: 0 or -ENOMEM, then call dwarf_walk_free(), too. */
int dwarf_walk_init(struct dwarf_walk *w, struct block_names *names, const struct graph *g,
		    struct image *img, struct dwarf_types *types, struct deadline until);
void dwarf_walk_free(struct dwarf_walk *w);

/* Can an object of @size bytes have got a block of @usable bytes?  glibc rounds up by up to 15, or to 24,
 * and adds 16 if they would be too few for a block; size classes of other allocators are up to a
 * quarter apart; large blocks have whole pages.  Of small objects the 16 are not allowed for: they are
 * too often the beginning of a larger one. */
static inline bool dwarf_fits(uint64_t size, uint64_t usable)
{
	const uint64_t spare = usable - size;

	return usable >= size &&
	       (spare < 16 || usable <= 24 || (size >= 40 && spare < 32) ||
		(size >= 128 && spare <= size / 4) || (size >= 32768 && spare < 16384));
}
/* Can an object of exactly @size bytes, or some more, have got a block of @usable bytes?  As
 * dwarf_fits(), for what checks more than the size. */
static inline bool dwarf_may_fit(uint64_t size, uint64_t usable)
{
	const uint64_t spare = usable - size;

	return usable >= size &&
	       (spare < 48 || spare <= size / 4 || (size >= 32768 && spare < 16384));
}
static inline bool dwarf_claimed(const struct dwarf_walk *w, uint32_t block)
{
	return bitmap_has(w->claimed, block);
}
/* Return: the number of the block that starts at @addr and has at least @size bytes, or INDEX_NONE. */
uint32_t dwarf_block(const struct dwarf_walk *w, uint64_t addr, uint64_t size);
/* Claims a block and names it, unless @id is 0.  Return: false if it was claimed before. */
bool dwarf_claim(struct dwarf_walk *w, uint32_t block, uint32_t id);
/* From now on @n elements of type @t, the first at @offset, wait in a block. */
void dwarf_wait(struct dwarf_walk *w, uint32_t block, struct dwarf_type *t, uint64_t offset,
		uint64_t from, uint64_t n);
/* Is it the first time that a container at @addr is seen? */
bool dwarf_count_once(struct dwarf_walk *w, uint64_t addr);
static inline bool dwarf_word(struct dwarf_walk *w, uint64_t addr, uint64_t *value)
{
	return dwarf_memory_number(w->memory, addr, w->word, value);
}
/* Reads @n words of a container at the first offsets of @l.  Return: false if one cannot be read. */
bool dwarf_words(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l, int n,
		 uint64_t *value);
/* Return: the id of the name "@before@type@after"; 0 when out of memory. */
uint32_t dwarf_name(struct dwarf_walk *w, const char *before, const char *type, const char *after,
		    const char *owner);
/* Adds a container with the name l->id. */
void dwarf_add(struct dwarf_walk *w, const struct dwarf_layout *l, struct container *c);
/* Has time run out? */
bool dwarf_late(struct dwarf_walk *w);

/* Finds members by their paths; all have to exist.  Return: whether they do, with their offsets in @at,
 * and in *@first the type of the first one. */
bool dwarf_paths(struct dwarf_walk *w, struct dwarf_type *t, const char *const *path, int n,
		 uint64_t *at, struct dwarf_type **first);
/* Is @t a class template of the standard library (libstdc++, libc++) called @name? */
bool dwarf_is_std(const struct dwarf_type *t, const char *name);
/* Return: the type of the elements, as the container's allocator has it, or NULL. */
struct dwarf_type *dwarf_value(struct dwarf_walk *w, struct dwarf_type *t);

/* Nodes of a container, collected before any of them is claimed. */
struct dwarf_nodes {
	VEC(uint32_t) list;
};
/* Names all of @nodes, adds them to @c, and lets their values wait.  Return: false if one of them was
 * claimed before, then none is claimed. */
bool dwarf_claim_nodes(struct dwarf_walk *w, const struct dwarf_layout *l,
		       const struct dwarf_nodes *nodes, uint32_t id, struct container *c);

#endif
