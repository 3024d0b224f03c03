/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names of those addresses in generated code that occur in stacks.
 *
 * A program announces its code piece by piece, in the order of time, and can put new code where old
 * code was.  Stacks of a recording have no time, so an address has every name that was valid at some
 * time during the recording: the last one that was announced before it began, and all later ones.
 * If these differ, the address has all of them as its name, the newest first, and no source: nothing
 * shows which one a stack means.
 */
#ifndef UNWIND_SYMBOLS_JIT_NAMES_H
#define UNWIND_SYMBOLS_JIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/check.h"

#define JIT_MAX_NAME 1024 /* bytes kept of a name */

struct jit_names;

/* Where the instructions from @address on come from. */
struct jit_line {
	uint64_t address;
	const char *source;
	uint32_t line, column;
};

/* A piece of code, as the program announced it. */
struct jit_code {
	uint64_t start, size; /* bytes */
	const char *name;     /* NUL-terminated, not empty */
	bool late;	      /* announced when the recording had begun, or it is not known */
	const struct jit_line *line;
	size_t lines; /* 0: those of the name */
};

/* What was found in a file. */
struct jit_read {
	uint64_t codes;	  /* pieces of code */
	uint64_t invalid; /* lines or records that were skipped */
	bool partial; /* the file was too large, or too much was announced: the rest was left out */
};

/* @addresses: of instructions, in any order; copied.  Return: NULL if out of memory. */
struct jit_names *jit_names_new(const uint64_t *addresses, size_t n);
void jit_names_free(struct jit_names *j);

/* Return: whether any of the addresses is in this code. */
bool jit_names_wants(const struct jit_names *j, uint64_t start, uint64_t size);
/* Names the addresses in @code.  Return: 0, -ENOMEM, or -E2BIG: the limit of memory or of work is
 * reached. */
__must_check int jit_names_put(struct jit_names *j, const struct jit_code *code);
/* Notes that a part of what was announced is not known: no name is certain to be the only one. */
void jit_names_leave_out(struct jit_names *j);
/* Return: 1 with @out set, whose texts live as long as @j; 0: the address has no name. */
uint32_t jit_names_find(struct jit_names *j, uint64_t address, struct mp_symbol *out);

#endif
