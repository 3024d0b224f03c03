/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file.  Addresses are the file's own (ELF virtual
 * addresses), so that it does not matter where, how often and in how many pieces it is mapped.
 */
#ifndef UNWIND_SYMFILE_H
#define UNWIND_SYMFILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

struct symfile;

/* Strings live as long as the file; NULL: not known. */
struct symfile_frame {
	const char *name;   /* as the linker knows it, where that is recorded */
	const char *source; /* path */
	uint32_t line, column;
	bool is_inline; /* a copy inside the next one */
};

/**
 * symfile_open() - an ELF file, and its separate debug files
 * @callbacks: how libdwfl finds the latter; kept
 * @name: the path that it is known by; where its debug files are looked for
 * @path, @fd: where it is read from; @fd is taken over when this succeeds
 * Return: NULL when it cannot be read or out of memory.
 */
struct symfile *symfile_open(const Dwfl_Callbacks *callbacks, const char *name, const char *path,
			     int fd);
void symfile_free(struct symfile *f);

/**
 * symfile_find() - what the instruction at @addr belongs to
 * @out, @max: the innermost inlined call first, the function itself last
 * Return: number of frames; 0 when no function is known.
 */
uint32_t symfile_find(struct symfile *f, uint64_t addr, struct symfile_frame *out, uint32_t max);

#endif
