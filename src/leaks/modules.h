/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program's files as they are mapped in an image: names of variables and functions, and
 * unwind tables.  A file is opened when something in it is asked for the first time.
 */
#ifndef LEAKS_MODULES_H
#define LEAKS_MODULES_H

#include "snapshot/image.h"
#include "unwind/rule.h"
#include "unwind/symbols/symfile.h"

struct modules;

/* @img: must stay open.  Return: NULL when out of memory. */
struct modules *modules_new(struct image *img);
void modules_free(struct modules *m);

/* Return: the number of the module whose file, or .bss, is mapped at @addr; UINT32_MAX: none. */
uint32_t modules_at(const struct modules *m, uint64_t addr);
/* Return: the end of its segments in memory, behind which another mapping can follow that the kernel
 * shows together with .bss; UINT64_MAX if its file cannot be read. */
uint64_t modules_end(struct modules *m, uint32_t module);
/* Return: its path.  Valid as long as the image. */
const char *modules_path(const struct modules *m, uint32_t module);

struct module_variable {
	uint64_t addr, size;
	const char *symbol; /* as in the symbol table; valid as long as the modules */
};
/* Finds the variable with @addr, in the module's memory.  Return: false if no symbol has it. */
bool modules_variable(struct modules *m, uint64_t addr, struct module_variable *out);
/* Finds the thread-local variable of the executable with @addr, in the thread with thread pointer
 * @tp.  Return: false if there is none, or the C library is not known well enough. */
bool modules_tls(struct modules *m, uint64_t tp, uint64_t addr, struct module_variable *out);

/* How a variable is shown. */
struct module_name {
	char name[160];	    /* "g_sessions", "serve()::cache" */
	const char *source; /* path of the file that declares it, or NULL; valid as long as m */
	uint32_t line;
};
/* @tp: of the thread of a thread-local variable, else 0. */
void modules_name(struct modules *m, const struct module_variable *v, uint64_t tp,
		  struct module_name *out);
/* Describes an address without a symbol: ".bss+0x1240".  Without section headers: "+0x3240", from
 * the start of the module. */
void modules_place(struct modules *m, uint64_t addr, char *name, size_t size);

/* The debug information of a module. */
struct module_debug {
	Dwarf *dwarf;
	uint64_t bias; /* address in memory - address in the debug information */
	struct symfile *file;
};
uint32_t modules_count(const struct modules *m);
/* Return: false if it has none. */
bool modules_debug(struct modules *m, uint32_t module, struct module_debug *out);
/* As symfile_locals(), with @pc in memory. */
int modules_locals(struct modules *m, uint64_t pc, symfile_local_fn *fn, void *ctx);
/* Return: where the executable's thread-local storage begins in the thread with thread pointer @tp;
 * 0: there is none, or the C library is not known well enough. */
uint64_t modules_tls_start(struct modules *m, uint64_t tp);

/* Finds the rule to unwind the frame with @pc.  Return: false if there is none. */
bool modules_rule(struct modules *m, uint64_t pc, struct uw_full *rule);
/* Names the function with @pc.  Return: false if no symbol is known. */
bool modules_function(struct modules *m, uint64_t pc, char *name, size_t size);

#endif
