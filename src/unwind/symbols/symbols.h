/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maps addresses to functions, inlined frames, files and lines.  C++, Rust and D names are
 * demangled (libiberty). */
#ifndef UNWIND_SYMBOLS_SYMBOLS_H
#define UNWIND_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct jit_names;
struct symbols;

/* @debug_dirs: NULL-terminated extra directories with debug files or binaries; can be NULL. */
struct symbols *symbols_new(const char *const *debug_dirs);
void symbols_free(struct symbols *s);

struct debuginfod;
/* From now on asks servers for debug files that this machine does not have, whenever symbols_find()
 * searches for one.  @servers: must stay valid; NULL: does not ask. */
void symbols_ask(struct symbols *s, struct debuginfod *servers);

/**
 * symbols_add_module() - add a mapped module
 * @m: the module as recorded
 * @open_path: file to read instead of @m->path (e.g. /proc/PID/root/...), or NULL
 * A file whose build-id differs from @m->build_id is not used.  Separate debug files are found by
 * build-id and debuglink below /usr/lib/debug and @debug_dirs, also .gnu_debugdata.
 * Return: 0, or -errno if there is no file to read symbols from (symbols_module() still finds the
 * module).
 */
int symbols_add_module(struct symbols *s, const struct mp_module *m, const char *open_path);

/* Return: whether @fd is an ELF file and has the build id of @m, if @m has one. */
bool symbols_right_file(int fd, const struct mp_module *m);

/**
 * symbols_find() - find the frames of an address: inlined ones first, innermost first; the
 * function itself last
 * @pc: as in recordings: with SS_PC_EXACT the address of an instruction, else a return address
 * (looked up one byte before)
 * @out, @max: filled; strings live as long as @s
 * Return: number of frames (0: no symbol is known).
 */
uint32_t symbols_find(struct symbols *s, uint64_t pc, struct mp_symbol *out, uint32_t max);
/* Return: the module that contains @pc at the end of the recording, or NULL. */
const struct mp_module *symbols_module(const struct symbols *s, uint64_t pc);

/* Return: whether @pc is in a file from which symbols are read. */
bool symbols_in_file(const struct symbols *s, uint64_t pc);
/* From now on, symbols_find() has these names for addresses that are in no file.  @jit: becomes the
 * property of @s. */
void symbols_set_jit(struct symbols *s, struct jit_names *jit);

/* Return: demangled name (malloc'd, caller frees) or NULL if @raw is not mangled. */
char *symbol_demangle(const char *raw);

#endif
