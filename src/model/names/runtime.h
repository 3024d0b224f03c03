/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Decides which frames are the user's own code, and which belong to the runtime: the libraries of
 * C, C++, Rust and Go, V8 and node, and the allocators.  This is the only place that decides so.
 */
#ifndef MODEL_NAMES_RUNTIME_H
#define MODEL_NAMES_RUNTIME_H

#include <stdbool.h>
#include "model/names/frames.h"

/* The values are bit numbers in shown_frame.runtimes. */
enum runtime {
	RUNTIME_NONE, /* the user's own code */
	RUNTIME_LIBC, /* with the dynamic loader and the threads */
	RUNTIME_LIBSTDCXX,
	RUNTIME_LIBCXX,
	RUNTIME_RUST,
	RUNTIME_GO,
	RUNTIME_V8,
	RUNTIME_NODE,
	RUNTIME_ALLOCATOR, /* one that is not in libc */
	RUNTIME_MEMPROF,   /* no code: the name of stacks that were not kept */
	RUNTIMES,
};

/**
 * runtime_of() - decide which runtime a frame belongs to
 * @in_program: its module is the program itself, not a library
 *
 * The module decides first; then the function's name, since templates of the C++ library, static
 * libraries and allocators are in the user's files, too; then the source file.
 *
 * Return: RUNTIME_NONE: the user's own code.
 */
enum runtime runtime_of(const struct frame *f, bool in_program);

/* Return: whether the runtime executes scripts: its frames are the user's own code in a stack without
 * a function of a script. */
static inline bool runtime_is_engine(enum runtime r)
{
	return r == RUNTIME_V8 || r == RUNTIME_NODE;
}

/* Return: its name for reports: "libstdc++". */
const char *runtime_text(enum runtime r);

#endif
