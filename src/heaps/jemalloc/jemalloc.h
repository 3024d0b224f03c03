/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The data structures of jemalloc 5.2 and 5.3, for the code that finds and walks them. */
#ifndef HEAPS_JEMALLOC_JEMALLOC_H
#define HEAPS_JEMALLOC_JEMALLOC_H

#include <stdbool.h>
#include <stdint.h>
#include "heaps/addr_list.h"
#include "heaps/heap.h"
#include "lib/vec.h"
#include "snapshot/image.h"

#define JE_PAGE	   4096ull
#define JE_BINS	   36	/* size classes in slabs */
#define JE_CLASSES 232	/* all size classes (SC_NSIZES) */
#define JE_ARENAS  4094 /* maximum (MALLOCX_ARENA_LIMIT - 1) */

/* The radix tree, which depends on the address size of the machine on which jemalloc was
 * configured.  A node is an array of pointers; each level uses the address bits above its shift. */
struct je_tree {
	unsigned root_shift;
	unsigned node_shift; /* of the level between root and leaves; 0: no such level */
	uint64_t root_words, node_words;
	uint64_t leaf_elements, leaf_words; /* words per element */
};

/* What differs between versions: offsets and sizes in bytes, for bit fields in bits. */
struct je_layout {
	const char *version;
	unsigned state_shift, state_bits, class_shift, nfree_shift; /* in je_edata.bits */
	/* struct arena_s */
	uint64_t arena_internal; /* stats.internal */
	uint64_t arena_large;	 /* stats.lstats: 48 bytes each: nmalloc, ndalloc, ... */
	uint64_t arena_caches;	 /* the first of a ring */
	uint64_t arena_base, arena_bins;
	bool bins_apart; /* arena_bins points to the bins of each class */
	/* bin_t, struct base_s */
	uint64_t bin_size, bin_curregs, base_blocks, base_allocated;
	/* The structure that the ring links: tcache_slow_t, or a whole tcache_t. */
	uint64_t cache_next, cache_arena;
};

/* edata_t (5.2: extent_t): one extent. */
struct je_edata {
	uint64_t bits, addr, size_esn, ps, sn, link[3];
	uint64_t bitmap[8]; /* for slabs; 1: free */
};
_Static_assert(sizeof(struct je_edata) == 128, "as in jemalloc");

enum je_state { JE_ACTIVE, JE_DIRTY, JE_MUZZY, JE_RETAINED, JE_TRANSITION, JE_MERGING };

/* Fields of edata_t.e_bits: arena 12 bits, slab 1, then at offsets that depend on the version:
 * state, class 8 bits, free regions 10. */
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

/* Address of the edata_t in a leaf's element, 0 for none.  With 48-bit addresses the word also has
 * the class (8 bits at 48) and flags in the bits below the alignment; with 57-bit addresses the
 * class is in a second word. */
static inline uint64_t je_leaf_edata(uint64_t word, const struct je_tree *tree)
{
	return word & (tree->leaf_words == 1 ? 0xffffffffffc0 : ~0x3full);
}

/* bin_info_t: the layout of a class's slabs. */
struct je_bin {
	uint64_t reg_size, slab_size;
	uint32_t nregs, n_shards;
	uint64_t bits, groups; /* of the bitmap */
};

struct je_arena {
	uint64_t addr;
	unsigned index;
	/* The arena's counters; the walk subtracts what it finds. */
	int64_t regions[JE_BINS], large[JE_CLASSES - JE_BINS], internal;
};

struct je {
	struct image *img;
	struct heap *heap;
	const struct je_tree *tree;
	const struct je_layout *layout;
	uint64_t root;	    /* of the tree */
	uint64_t arenas_at; /* of the table of pointers to arenas */
	struct je_bin bin[JE_BINS];
	uint64_t class_size[JE_CLASSES];
	VEC(struct je_arena) arenas;
	struct addr_list cached;   /* regions in threads' caches */
	struct addr_list internal; /* blocks in its arenas that jemalloc uses itself */
	uint64_t end;		   /* of the last extent */
	uint64_t *leaf;		   /* buffer */
};

static inline uint64_t je_word(struct je *je, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(je->img, addr, &word) ? word : 0;
}

/* Finds tree, arenas, tables and version.  Return: 0; -ENOENT: no jemalloc; -ENOTSUP: an unknown
 * version; -ENOMEM. */
int je_find(struct je *je);
/* arenas.c: lists the arenas, their counters, and the regions in their threads' caches.
 * Return: as je_find(). */
int je_take_arenas(struct je *je);

#endif
