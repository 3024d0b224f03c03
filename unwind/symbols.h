/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Addresses to functions, inlined frames, files and lines; C++, Rust and D demangled (libiberty).
 */
#ifndef UNWIND_SYMBOLS_H
#define UNWIND_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"

struct symbols;

/* @debug_dirs: NULL-terminated extra directories with debug files or binaries; may be NULL. */
struct symbols *symbols_new(const char *const *debug_dirs);
void symbols_free(struct symbols *s);

/**
 * symbols_add_module() - tell where a module is mapped
 * @m: as recorded
 * @open_path: file to read instead of @m->path (e.g. /proc/PID/root/...), or NULL
 * A file whose build-id differs from @m->build_id is not used.  Separate debug files are found by
 * build-id and debuglink below /usr/lib/debug and @debug_dirs, also .gnu_debugdata.
 * Return: 0, or -errno when there is nothing to read symbols from (addresses in it still get the
 * module's name).
 */
int symbols_add_module(struct symbols *s, const struct mp_module *m, const char *open_path);

/* Is what @fd reads an ELF file, and with @m's build id if that has one? */
bool symbols_right_file(int fd, const struct mp_module *m);

/**
 * symbols_find() - frames of one address, innermost inlined first, the real function last
 * @pc: as in recordings: SS_PC_EXACT set: the instruction itself, else a return address (looked up
 *	one byte before)
 * @out, @max: filled; strings live as long as @s
 * Return: number of frames (0: nothing is known).
 */
uint32_t symbols_find(struct symbols *s, uint64_t pc, struct mp_symbol *out, uint32_t max);
/* Return: the module that contains @pc at the end of the recording, or NULL. */
const struct mp_module *symbols_module(const struct symbols *s, uint64_t pc);

/* Return: demangled name (malloc'd, caller frees) or NULL if @raw is not mangled. */
char *symbol_demangle(const char *raw);

#endif
