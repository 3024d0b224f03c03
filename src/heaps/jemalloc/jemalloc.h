/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The data structures of jemalloc 5.1 to 5.3, for the code that finds and walks them. */
#ifndef HEAPS_JEMALLOC_JEMALLOC_H
#define HEAPS_JEMALLOC_JEMALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "heaps/addr_list.h"
#include "heaps/heap.h"
#include "lib/vec.h"
#include "snapshot/image.h"

#define JE_MAX_BINS 52	 /* size classes in slabs */
#define JE_CLASSES  232	 /* all size classes (SC_NSIZES) */
#define JE_ARENAS   4094 /* maximum (MALLOCX_ARENA_LIMIT - 1) */

/* The radix tree, which depends on the address size of the machine on which jemalloc was
 * configured.  A node is an array of pointers; each level uses the address bits above its shift. */
struct je_tree {
	unsigned root_shift;
	unsigned node_shift; /* of the level between root and leaves; 0: no such level */
	uint64_t root_words, node_words;
	uint64_t leaf_elements, leaf_words; /* words per element */
	unsigned page_shift;		    /* log2 of jemalloc's page size */
};

/* What differs between versions: offsets and sizes in bytes, for bit fields in bits. */
struct je_layout {
	const char *version;
	unsigned page_shift;
	unsigned bins;		/* how many size classes are in slabs */
	unsigned bin_info_size; /* of a bin_info_t */
	bool const_tables;	/* those of size classes are constants */
	bool plain_large;	/* the size of a large block is not rounded to a class */
	unsigned state_shift, state_bits, class_shift; /* in je_edata.bits */
	unsigned nfree_shift, nfree_bits;
	/* struct arena_s */
	uint64_t arena_internal; /* stats.internal */
	uint64_t arena_large;	 /* stats.lstats: nmalloc, ndalloc, ... */
	uint64_t large_size;	 /* of an element */
	uint64_t arena_caches;	 /* the first of a ring */
	uint64_t arena_base, arena_bins;
	bool bins_apart; /* arena_bins points to the bins of each class */
	/* bin_t, struct base_s */
	uint64_t bin_size, bin_curregs, base_blocks, base_allocated;
	bool one_shard; /* of each class, and bin_info_t does not say so */
	/* The structure that the ring links: tcache_slow_t, or a whole tcache_t (cache_next != 0).
	 */
	uint64_t cache_next, cache_arena;
	uint64_t cache_dyn;	/* tcache_slow_t.dyn_alloc, followed by .tcache */
	unsigned cache_bins;	/* of tcache_t, with tcache_slow_t */
	uint64_t cache_large;	/* tcache_t.bins_large, where there are two arrays of bins */
	uint64_t cache_tickers; /* tsd_t.arenas_tdata is so much before tsd_t.tcache */
};

extern const struct je_layout je_layouts[];
extern const size_t je_layout_count;

/* The beginning of edata_t (5.2: extent_t), which describes one extent.  For slabs the bitmap of
 * their regions follows; 1: free. */
struct je_edata {
	uint64_t bits, addr, size_esn, ps, sn, link[3];
};
_Static_assert(sizeof(struct je_edata) == 64, "as in jemalloc");
#define JE_MAX_REGIONS 8192 /* of a slab */

enum je_state { JE_ACTIVE, JE_DIRTY, JE_MUZZY, JE_RETAINED, JE_TRANSITION, JE_MERGING };

/* Fields of edata_t.e_bits: arena 12 bits, slab 1, then at offsets that depend on the version:
 * state, class 8 bits, free regions. */
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
	return e->bits >> l->nfree_shift & ((1u << l->nfree_bits) - 1);
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
	uint64_t bits; /* of the bitmap */
};

struct je_arena {
	uint64_t addr;
	unsigned index;
	/* The arena's counters; the walk subtracts what it finds. */
	int64_t regions[JE_MAX_BINS], large[JE_CLASSES], internal;
};

struct je {
	struct image *img;
	struct heap *heap;
	const struct je_tree *tree;
	const struct je_layout *layout;
	uint64_t root;	    /* of the tree */
	uint64_t arenas_at; /* of the table of pointers to arenas */
	struct je_bin bin[JE_MAX_BINS];
	uint64_t class_size[JE_CLASSES];
	VEC(struct je_arena) arenas;
	struct addr_list cached;   /* regions in threads' caches */
	struct addr_list internal; /* blocks in its arenas that jemalloc uses itself */
	uint64_t end;		   /* of the last extent */
	uint64_t padding;	   /* bytes of each large extent that are not the block's */
	uint64_t *leaf;		   /* buffer */
};

static inline uint64_t je_page(const struct je *je)
{
	return 1ull << je->tree->page_shift;
}

/* @value without the bits below jemalloc's page size. */
static inline uint64_t je_pages(const struct je *je, uint64_t value)
{
	return value & -je_page(je);
}

static inline uint64_t je_word(struct je *je, uint64_t addr)
{
	uint64_t word = 0;

	return image_word(je->img, addr, &word) ? word : 0;
}

/* Finds tree, arenas, tables and version.  Return: 0; -ENOENT: no jemalloc; -ENOTSUP: an unknown
 * version; -ENOMEM. */
int je_find(struct je *je);
/* classes.c: sets the sizes of classes and the layout of their slabs, as jemalloc makes them when it
 * is built. */
void je_make_tables(struct je *je);
/* arenas.c: lists the arenas, their counters, and the regions in their threads' caches.
 * Return: as je_find(). */
int je_take_arenas(struct je *je);

#endif
