/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file.  Addresses are ELF virtual addresses, so they
 * do not depend on the mappings of the file.
 */
#ifndef UNWIND_SYMBOLS_SYMFILE_H
#define UNWIND_SYMBOLS_SYMFILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

struct symfile;

/* Strings live as long as the file; NULL: not known. */
struct symfile_frame {
	const char *name;   /* the linkage name if it is recorded */
	const char *source; /* path; in DW_AT_comp_dir if it is relative and that is absolute */
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

struct debuginfod;
/* From now on asks servers for the debug file if this machine has none.  @servers: must stay valid;
 * NULL: does not ask. */
void symfile_ask(struct symfile *f, struct debuginfod *servers);

/**
 * symfile_find() - find the function and inlined calls that contain the instruction at @addr
 * @out, @max: filled, innermost inlined call first, the function itself last
 * Return: number of frames; 0 when no function is known.
 */
uint32_t symfile_find(struct symfile *f, uint64_t addr, struct symfile_frame *out, uint32_t max);

/* A variable with a fixed address, or a place in the thread-local storage of its module. */
typedef int symfile_object_fn(void *ctx, const char *name, uint64_t addr, uint64_t size, bool tls);
/* Calls @fn for every variable of the symbol tables, those of the debug files included, until it
 * returns other than 0.  Return: that value, or 0. */
int symfile_objects(struct symfile *f, symfile_object_fn *fn, void *ctx);

/* What the debug information has about a variable; strings as above. */
struct symfile_variable {
	const char *name, *source;
	const char *function; /* of a static variable of a function; else NULL */
	uint32_t line;
};
/**
 * symfile_variable() - find the declaration of the variable at @addr, or at offset @addr of
 * thread-local storage
 * The first call for a file reads all of its debug information.
 * Return: false if there is none.
 */
bool symfile_variable(struct symfile *f, uint64_t addr, bool tls, struct symfile_variable *out);

/* A variable of a function that is in memory, at @offset from the value of the register with DWARF's number
 * @base, or from the frame's canonical frame address if that is SYMFILE_CFA. */
#define SYMFILE_CFA -1
typedef int symfile_local_fn(void *ctx, Dwarf_Die *die, int base, int64_t offset);
/* Calls @fn for the variables and parameters that are in scope at the instruction @addr, of inlined calls,
 * too, until it returns other than 0; only for those whose place is the same in the whole scope.
 * Return: that value, or 0. */
int symfile_locals(struct symfile *f, uint64_t addr, symfile_local_fn *fn, void *ctx);

/* Return: the file's debug information, which lives as long as @f, with *@bias the difference of an
 * address in the file to that in the debug information; NULL if there is none. */
Dwarf *symfile_dwarf(struct symfile *f, Dwarf_Addr *bias);
/* As debug_file_may_split(). */
bool symfile_may_split(struct symfile *f, Dwarf_Die *unit);

#endif
