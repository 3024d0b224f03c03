/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What each variable, frame or block retains, as a tree for reports: the dominator tree
 * (dominators.h) with blocks of the same type and size put together.
 *
 * Blocks that have the same parent line and kind (block_names_key()) are one line.  A block below a block of its own kind belongs to the same line: so a list, a chain or a
 * tree of nodes is one line, and what its nodes keep is below it.
 */
#ifndef LEAKS_RETAINED_RETAINED_H
#define LEAKS_RETAINED_RETAINED_H

#include "heaps/census.h"
#include "leaks/growth/heap_types.h"
#include "leaks/retained/holders.h"
#include "leaks/types/block_names.h"
#include "leaks/roots.h"

#define RETAINED_MAX_DEPTH 64
#define RETAINED_ROOTS	   4 /* most names of roots in struct retained_line */

enum retained_kind {
	RETAINED_ALL,
	RETAINED_HOLDER, /* a variable, a frame ... */
	RETAINED_SHARED, /* blocks that several variables or frames reach, and none keeps alone */
	RETAINED_BLOCKS, /* blocks of one kind */
	RETAINED_REST,	 /* lines that are left out */
};

struct line_container {
	char *name; /* "std::map<int, session>" */
	enum name_source source;
	struct container is; /* without .name */
};

struct retained_line {
	enum retained_kind kind;
	enum holder_kind holder; /* of a holder */
	char *name;   /* of the variable; of blocks the class or "pointers", "text" ... */
	char *module; /* path of the file of the variable or class, or NULL */
	char *source; /* where a variable is declared, or NULL */
	uint32_t line;
	pid_t tid;	/* of a thread's data, else 0 */
	uint64_t addr;	/* of the variable, or of the block that retains most; 0: none */
	uint64_t size;	/* of the variable, or of each block; 0: not known, or they differ */
	uint64_t count; /* blocks of this line; of the rest: its lines */
	uint64_t own;	/* their bytes */
	uint64_t bytes, blocks;	    /* retained, those of this line included */
	uint64_t exact;		    /* bytes that hang on exact pointers (struct dominators) */
	uint64_t roots;		    /* that reach the block at .addr; 0: not counted, or only one */
	char *root[RETAINED_ROOTS]; /* the first ones' names; NULL after the last */
	char *type;		    /* declared type of a variable, or NULL */
	enum name_source source_of; /* of the type of a variable, or of the name of blocks */
	/* The largest container whose object, or first block, is in the variable or in the block at
	 * .addr; .name is NULL if there is none. */
	struct line_container container;
	uint32_t number;		    /* of a line of blocks, from 1 (struct retained) */
	struct retained_line *child, *next; /* sorted by bytes, most first; the rest is last */
};

struct retained_options {
	uint32_t depth; /* levels below the roots, at most RETAINED_MAX_DEPTH */
	uint32_t count; /* most lines below each line */
	const char *of; /* an address in hexadecimal, or the name of a variable; NULL: everything */
	struct heap_types *types; /* filled, too; NULL: not wanted */
	bool line_of;		  /* struct retained's .line_of is wanted: 4 bytes a block */
};

struct retained {
	struct retained_line *all; /* children: one for each root, or what .of asked for */
	uint64_t live_blocks, live_bytes;
	uint64_t unreached_blocks, unreached_bytes;
	uint64_t edges, roots; /* of the graph */
	uint64_t unreadable_bytes;
	uint64_t scan_ns, names_ns, dominators_ns, lines_ns; /* processor time */
	uint64_t graph_wall_ns; /* of pointers and dominators, by the clock: on two processors */
	struct block_notes notes;
	/* With .of: the lines from a root down to it, without children of their own. */
	VEC(struct retained_line *) path;
	/* By block of the census: the number of its line; 0: it is in none, or in the rest.  NULL
	 * unless it is wanted. */
	uint32_t *line_of;
	uint32_t lines;		   /* highest number of a line */
	bool of_unreached;	   /* .of is in a block that is live, but that nothing reaches */
	uint32_t threads, unwound; /* of these threads the stack is unwound to its end */
};

/**
 * retained_take() - find what retains what in an image
 * @r: filled; call retained_free() in any case
 * @c: census of @img; its blocks must stay in place
 * Return: 0; -ENOENT: there is no live block at, and no variable called @o->of; or another -errno;
 * with @err.
 */
int retained_take(struct retained *r, struct image *img, const struct census *c,
		  const struct retained_options *o, struct mp_err *err);
void retained_free(struct retained *r);
/* Return: "all", "shared", "blocks", "rest", or holder_kind_name(). */
const char *retained_kind_name(enum retained_kind kind, enum holder_kind holder);

#endif
