/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The symbols of a mapped file: which functions it defines that memprof hooks, and what it says of its
 * allocator. */
#ifndef INJECT_HOOKS_SYMBOLS_H
#define INJECT_HOOKS_SYMBOLS_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "attach/proc/maps.h"
#include "formats/session.h"
#include "inject/hooks/known.h"
#include "lib/vec.h"

/* A function to hook, by name: hooks.def. */
struct wanted {
	const char *name;
	uint8_t kind, size_kind;
	const char *sibling;
};
enum {
	NWANTED = 0
#define X(name, kind, size_kind, sibling) +1
#include "inject/hooks/hooks.def"
#undef X
};
extern const struct wanted wanted_function[NWANTED];
/* Return: index in wanted_function[], or -1. */
int wanted_find(const char *name);

/* A definition found in one module. */
struct found {
	uint64_t value, size; /* ELF address */
	uint8_t code_bits;    /* code bits of the symbol's value */
	bool indirect;	      /* IFUNC */
	bool local;	      /* visible only in the module */
};

struct module {
	const struct arch *arch;
	const struct map *map; /* first mapping of the file */
	uint64_t bias;
	uint64_t rseq_list, rseq_length; /* ELF address */
	struct found found[NWANTED];
	uint64_t libc_malloc; /* __libc_malloc: equals malloc if that is libc's own */
	uint64_t thread_end, thread_end_size; /* glibc's __malloc_arena_thread_freeres() */
	bool glibc, musl, loader;
	const struct known_allocator *known; /* another allocator that it contains; NULL: none */
	const char *sanitizer;		     /* the sanitizer that it is the runtime of, or NULL */
	VEC(uint64_t) starts;		     /* all function symbols, for symbols without size */
	VEC(uint64_t) free_slots;	     /* GOT words through which it calls some free() */
	bool nameless; /* a static program without function symbols, also in its debug file */
};

/**
 * module_scan() - read the symbols of a file
 * @m: .arch and .map set, else zero; to be freed by module_free()
 * @elf: of the file; NULL: none
 * Return: 0; -ENOENT if it is not a mapped ELF file; or -ENOMEM.
 */
int module_scan(struct module *m, Elf *elf);
void module_free(struct module *m);

#endif
