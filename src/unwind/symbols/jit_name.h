/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names that programs give to the code they generate (perf maps, jitdump).  Two programs put the
 * source into the name:
 *
 *	V8      LazyCompile:*handle /app/server.js:33:20    also JS:, Function:, Eval:, Script:
 *	Python  py::handle:/app/server.py
 *
 * V8 writes a mark of the tier before the function: "~" interpreted, "^" baseline, "+" and "*"
 * optimized.  The line is the one where the function begins.
 */
#ifndef UNWIND_SYMBOLS_JIT_NAME_H
#define UNWIND_SYMBOLS_JIT_NAME_H

#include <stdbool.h>
#include "formats/file.h"

/* Return: whether @name is that of a JavaScript function compiled by V8. */
bool jit_name_is_javascript(const char *name);

/**
 * jit_name_split() - get function, source, line and column of a name
 * @name: becomes @out->raw_function
 * @buf: room for strlen(@name) + JIT_NAME_MORE bytes, for the other texts of @out; it and @name must
 * live as long as @out
 *
 * The function has no mark; V8's functions without a name are "(anonymous)", as in V8's own stack
 * traces.  A name of another form is the function.
 */
#define JIT_NAME_MORE 16
void jit_name_split(const char *name, char *buf, struct mp_symbol *out);

#endif
