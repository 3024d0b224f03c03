/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* jemalloc 5.2 and 5.3 as they lie in memory: shared by what finds them and what walks them. */
#ifndef LEAKS_JEMALLOC_H
#define LEAKS_JEMALLOC_H

#include <stdbool.h>
#include <stdint.h>
#include "leaks/addr_list.h"
#include "leaks/walker.h"
#include "lib/vec.h"

#define JE_PAGE	   4096ull
#define JE_BINS	   36	/* size classes in slabs */
#define JE_CLASSES 232	/* all size classes (SC_NSIZES) */
#define JE_ARENAS  4094 /* at most (MALLOCX_ARENA_LIMIT - 1) */

/* The radix tree, by what addresses the machine had that jemalloc was configured on.  A node is an
 * array of pointers; each level takes the address bits above its shift. */
struct je_tree {
	unsigned root_shift;
	unsigned node_shift; /* of the level between root and leaves, 0: none */
	uint64_t root_words, node_words;
	uint64_t leaf_elements, leaf_words; /* words per element */
};

/* What differs between versions: offsets and sizes in bytes, of bit fields in bits. */
struct je_layout {
	const char *version;
	unsigned state_shift, state_bits, class_shift, nfree_shift; /* in je_edata.bits */
	/* struct arena_s */
	uint64_t arena_internal; /* stats.internal */
	uint64_t arena_large;	 /* stats.lstats: 48 bytes each: nmalloc, ndalloc, ... */
	uint64_t arena_caches;	 /* first of a ring */
	uint64_t arena_base, arena_bins;
	bool bins_apart; /* arena_bins: a pointer to each class's, not themselves */
	/* bin_t, struct base_s */
	uint64_t bin_size, bin_curregs, base_blocks, base_allocated;
	/* What the ring links: tcache_slow_t, or a whole tcache_t. */
	uint64_t cache_next, cache_arena;
};

/* edata_t (5.2: extent_t): one extent. */
struct je_edata {
	uint64_t bits, addr, size_esn, ps, sn, link[3];
	uint64_t bitmap[8]; /* of slabs; 1: free */
};
_Static_assert(sizeof(struct je_edata) == 128, "as in jemalloc");

enum je_state { JE_ACTIVE, JE_DIRTY, JE_MUZZY, JE_RETAINED, JE_TRANSITION, JE_MERGING };

/* Fields of edata_t.e_bits: arena 12 bits, slab, then by version state, class 8, free regions 10.
 */
static inline unsigned je_arena_ind(const struct je_edata *e)
{
	return e->bits & 0xfff;
}

static inline bool je_is_slab(const struct je_edata *e)
{
	return e->bits >> 12 & 1;
}

static inline enum je_state je_state(const struct je_layout *l, const struct je_edata *e)
{
	return (enum je_state)(e->bits >> l->state_shift & ((1u << l->state_bits) - 1));
}

static inline unsigned je_szind(const struct je_layout *l, const struct je_edata *e)
{
	return e->bits >> l->class_shift & 0xff;
}

static inline unsigned je_nfree(const struct je_layout *l, const struct je_edata *e)
{
	return e->bits >> l->nfree_shift & 0x3ff;
}

/* Address of the edata_t in a leaf's element, 0 for none.  With 48-bit addresses it shares a word
 * with the class (8 bits at 48), and others below its alignment; else those have their own. */
static inline uint64_t je_leaf_edata(uint64_t word, const struct je_tree *tree)
{
	return word & (tree->leaf_words == 1 ? 0xffffffffffc0 : ~0x3full);
}

/* bin_info_t: what a slab of a class looks like. */
struct je_bin {
	uint64_t reg_size, slab_size;
	uint32_t nregs, n_shards;
	uint64_t bits, groups; /* of the bitmap */
};

struct je_arena {
	uint64_t addr;
	unsigned index;
	/* The arena's counters; the walk takes off what it finds. */
	int64_t regions[JE_BINS], large[JE_CLASSES - JE_BINS], internal;
};

struct je {
	struct image *img;
	struct heap *heap;
	const struct je_tree *tree;
	const struct je_layout *layout;
	uint64_t root;	    /* of the tree */
	uint64_t arenas_at; /* table of pointers to arenas */
	struct je_bin bin[JE_BINS];
	uint64_t class_size[JE_CLASSES];
	VEC(struct je_arena) arenas;
	struct addr_list cached;   /* regions in threads' caches */
	struct addr_list internal; /* jemalloc's own blocks in its arenas */
	uint64_t end;		   /* of the last extent */
	uint64_t *leaf;		   /* buffer */
};

static inline uint64_t je_word(struct je *je, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(je->img, addr, &word) ? word : 0;
}

/* Finds tree, arenas, tables and version.  Return: 0, -ENOENT: no jemalloc; -ENOTSUP: one whose
 * layout is not known; -ENOMEM. */
int je_find(struct je *je);
/* In jemalloc_arenas.c: lists the arenas, their counters, and what their threads' caches hold.
 * Return: as above. */
int je_take_arenas(struct je *je);

#endif
