/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What holds blocks from outside the heaps: the roots of a graph, put together to variables, frames
 * and the like, with their names.
 */
#ifndef LEAKS_RETAINED_HOLDERS_H
#define LEAKS_RETAINED_HOLDERS_H

#include "leaks/retained/dominators.h"
#include "leaks/frames.h"
#include "leaks/graph.h"
#include "leaks/modules.h"

enum holder_kind {
	HOLDER_MODULE,	  /* a module: the parent of its variables */
	HOLDER_VARIABLE,  /* a global or static variable */
	HOLDER_PLACE,	  /* a word of a module's data without a symbol */
	HOLDER_TLS,	  /* a thread-local variable */
	HOLDER_TLS_PLACE, /* other thread-local data of a thread */
	HOLDER_THREAD,	  /* a thread: the parent of its frames and registers */
	HOLDER_FRAME,
	HOLDER_STACK, /* parts of a stack whose frame is not known */
	HOLDER_REGISTERS,
	HOLDER_EXITED,	 /* data of an exited thread */
	HOLDER_MAPPINGS, /* the parent of all mappings and code */
	HOLDER_MAPPING,
	HOLDER_CODE, /* made at run time */
	HOLDER_KERNEL,
};
/* "variable", "frame", ... as in JSON. */
const char *holder_kind_name(enum holder_kind kind);

struct holder {
	enum holder_kind kind;
	uint32_t parent; /* number, or INDEX_NONE */
	uint64_t addr;	 /* of the variable or mapping; 0: none */
	uint64_t size;	 /* bytes; 0: not known */
	pid_t tid;	 /* of thread-local data, frames and registers, else 0 */
	uint32_t module; /* number, or UINT32_MAX */
	long frame;	 /* index, or -1 */
	const char *symbol;
};

struct holders {
	struct image *img;
	struct modules *modules; /* borrowed */
	struct frames frames;
	VEC(struct holder) list;
	/* The edges, in the form that dominators_find() wants. */
	struct dom_holders edges;
};

/**
 * holders_make() - make the holders of all roots of @g, which are freed
 * @img, @g, @m: must stay; @m is of @img
 * Return: 0 or -ENOMEM.
 */
int holders_make(struct holders *h, struct graph *g, struct image *img, struct modules *m);
void holders_free(struct holders *h);

struct holder_name {
	char name[256];	    /* "g_sessions", "serve() of thread 12 (worker-3)" */
	const char *module; /* path, or NULL; valid as long as the image */
	const char
	    *source; /* where a variable is declared, or NULL; valid as long as the holders */
	uint32_t line;
};
/* Is it the parent of others? */
static inline bool holder_is_parent(enum holder_kind kind)
{
	return kind == HOLDER_MODULE || kind == HOLDER_THREAD || kind == HOLDER_MAPPINGS;
}
void holder_name(const struct holders *h, uint32_t holder, struct holder_name *out);
/* Is the holder the variable called @name ("g_sessions", "serve()::cache", "f.c:cache")? */
bool holder_is(const struct holders *h, uint32_t holder, const char *name);

#endif
