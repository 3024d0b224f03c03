/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A look: what one snapshot says about the heap, in a form that can be kept, saved (look_file.h) and
 * compared with looks at other times and of other runs (growth.h).
 *
 * It has the lines of retained.h and the types of heap_types.h, with names that are the same in
 * every run of the same build: modules without their folder, threads by name instead of id,
 * mappings without address.  Digits in names of threads and of mapped files are left out, since they
 * count instances.
 */
#ifndef LEAKS_GROWTH_LOOK_H
#define LEAKS_GROWTH_LOOK_H

#include "heaps/census.h"
#include "leaks/retained/retained.h"

/* How much a look has: deep and broad enough that a line which grows was there before. */
#define LOOK_DEPTH   16
#define LOOK_COUNT   1000
#define LOOK_TYPES   10000
#define LOOK_MODULES 1000

struct look_line {
	enum retained_kind kind;
	enum holder_kind holder; /* of a holder */
	bool typed;		 /* blocks: .name is a class or type; false: what they look like */
	char *name;
	char *module;  /* file name, or NULL */
	char *source;  /* file name of the declaration, or NULL */
	char *reached; /* shared blocks: "server, lctx": roots that reach the largest, or NULL */
	const char *build; /* of a variable without a symbol: build id of its module; not owned */
	uint32_t line;	   /* of the declaration */
	uint64_t size;	   /* blocks: usable bytes of each, 0 if they differ */
	uint64_t count;	   /* blocks of this line; of the rest: its lines */
	uint64_t own;	   /* their bytes */
	uint64_t bytes, blocks; /* retained */
	struct look_line *child, *next;
};

/* All blocks, or all containers, of a type. */
struct look_type {
	char *name;	       /* "" for blocks without a class */
	char *module;	       /* file name, or NULL */
	uint64_t size;	       /* of each block; 0 for classes and containers */
	uint64_t count, bytes; /* blocks, or elements; bytes of the blocks */
};
typedef VEC(struct look_type) look_types;

struct look_module {
	char *name;	/* file name */
	char *build_id; /* in hexadecimal; NULL: it has none, or its file cannot be read */
};

struct look {
	char *program;	/* file name of the executable */
	char *build_id; /* of the executable, or NULL */
	char *name;	/* of the process */
	char *mode;	/* snapshot_mode_name() or "core" */
	char *version;	/* of memprof */
	char *boot;	/* id of the machine's boot; NULL: a core */
	pid_t pid;
	uint64_t space;	   /* changes when the process executes a program; 0: not known (a core) */
	uint64_t started;  /* proc_start_time(); 0: not known (a core) */
	uint64_t age_ns;   /* of the process; 0: not known */
	uint64_t taken_ns; /* CLOCK_MONOTONIC, for looks with the same .boot; 0: not known */
	uint64_t clock_ns; /* Unix time; 0: not known */
	uint64_t pause_ns; /* 0: a core */
	bool exact;	   /* as struct census */
	uint64_t live_blocks, live_bytes;
	uint64_t unreached_blocks, unreached_bytes;
	VEC(struct look_module) modules; /* of variables without a symbol */
	struct look_line *all;
	look_types types, containers; /* most bytes first, at most LOOK_TYPES */
};

/**
 * look_take() - take a look at an image
 * @l: filled, except for what the caller knows: .name, .mode, .pause_ns, .taken_ns; call look_free()
 * in any case
 * @exe: path of the executable as in the image's maps
 * @c: census of @img
 * Return: 0, or -errno with @err.
 */
int look_take(struct look *l, struct image *img, const struct census *c, const char *exe,
	      struct mp_err *err);
void look_free(struct look *l);

/* Makes an empty line.  Return: NULL when out of memory. */
struct look_line *look_line_new(enum retained_kind kind);
/* Frees @l and all below it. */
void look_line_free(struct look_line *l);
/* Return: whether the two are of the same run of a process. */
bool look_same_process(const struct look *a, const struct look *b);
/* Sets .build of the lines, from .modules. */
void look_set_builds(struct look *l);

/* For tests: the stable form of a name of retained.h, to be freed; NULL when out of memory. */
char *look_stable_name(const char *name, enum retained_kind kind, enum holder_kind holder,
		       pid_t tid);

#endif
