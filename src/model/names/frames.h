/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The frames of an address: function, source line and library. */
#ifndef MODEL_NAMES_FRAMES_H
#define MODEL_NAMES_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "formats/file.h"

/* The library of code that the program generated and named (unwind/symbols/jit_names.h). */
#define LIBRARY_JIT "JIT code"

/* Frames of one address that are shown, at most */
#define MAX_INLINED 64

struct frame {
	const char *function;			     /* never NULL */
	const char *raw_function, *source, *library; /* may be NULL */
	uint32_t line, column;
	uint64_t address, offset; /* offset: of the address in the library's file */
	bool is_inline;
};

/* Return: whether the program generated the frame's code, and named it. */
static inline bool frame_is_jit(const struct frame *f)
{
	return f->library && !strcmp(f->library, LIBRARY_JIT);
}

struct names;
struct symbols;
/* Used by frames.c. */
struct naming {
	struct names *names;	 /* model/facts.c adds those of the recording */
	struct symbols *symbols; /* of the files of this machine; NULL: not needed yet */
};

/* Return: the file name of a module for reports: that of the program is the one by which the user
 * called it, redis-server for /usr/bin/redis-check-rdb.  @executable, @called: as in struct mp_info */
const char *library_name(const char *path, const char *executable, const char *called);

struct model;
/* Return: the module that contained @address last, or NULL. */
const struct mp_module *model_module(const struct model *m, uint64_t address);

/* Return: library_name() of a module; NULL if @mod is NULL or has no file.  Valid as long as @m. */
const char *model_library(const struct model *m, const struct mp_module *mod);

/* Finds the frames of one address, innermost inlined one first.  Return: their number, at least 1.
 * Valid as long as @m. */
uint32_t model_frames(struct model *m, uint64_t pc, struct frame *out, uint32_t max);
/* Return: the symbols of this machine's files, if the recording has none: it is not at its end, or
 * its recorder was killed.  NULL: it has symbols, or out of memory.  Belongs to @m. */
struct symbols *model_late_symbols(struct model *m);
void naming_free(struct naming *n);

#endif
