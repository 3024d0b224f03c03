/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file.  Addresses are ELF virtual addresses, so they
 * do not depend on the mappings of the file.
 */
#ifndef UNWIND_SYMFILE_H
#define UNWIND_SYMFILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

struct symfile;

/* Strings live as long as the file; NULL: not known. */
struct symfile_frame {
	const char *name;   /* the linkage name if it is recorded */
	const char *source; /* path */
	uint32_t line, column;
	bool is_inline; /* inlined into the next frame */
};

/**
 * symfile_open() - open an ELF file and its separate debug files
 * @callbacks: how libdwfl finds the debug files; must stay valid
 * @name: the path by which the file is known, near which its debug files are searched for
 * @path, @fd: where to read the file from; on success @fd is owned by the symfile
 * Return: NULL if it cannot be read or memory is exhausted.
 */
struct symfile *symfile_open(const Dwfl_Callbacks *callbacks, const char *name, const char *path,
			     int fd);
void symfile_free(struct symfile *f);

/**
 * symfile_find() - find the function and inlined calls that contain the instruction at @addr
 * @out, @max: filled, innermost inlined call first, the function itself last
 * Return: number of frames; 0 when no function is known.
 */
uint32_t symfile_find(struct symfile *f, uint64_t addr, struct symfile_frame *out, uint32_t max);

#endif
