/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finding an allocator's static data without symbols: by what it must look like. */
#ifndef LEAKS_SCAN_H
#define LEAKS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "leaks/image.h"
#include "leaks/walker.h"

/*
 * One stretch of a module's writable data: .data and .bss as they are mapped, up to
 * SCAN_MAX_BYTES.
 */
#define SCAN_MAX_BYTES (256ul << 20)
struct scan_data {
	struct image *img;
	uint64_t start;
	const uint64_t *words;
	size_t n; /* words that could be read */
};

/**
 * scan_modules() - look at the data of every module, program first to last map
 * @visit: returns 0 to go on, anything else to end
 * Return: what @visit returned last, 0 if there is no data, or -ENOMEM.
 */
int scan_modules(struct image *img, int (*visit)(const struct scan_data *data, void *arg),
		 void *arg);

/**
 * scan_modules_with() - the same, of modules in whose constants @text stands
 * @text: of a message that the allocator has wherever it is linked into
 * @bytes: modules with less data are left out
 * To look for structures everywhere takes minutes in a large process.  Where constants cannot be
 * read, they may have it.
 */
int scan_modules_with(struct image *img, const char *text, size_t bytes,
		      int (*visit)(const struct scan_data *data, void *arg), void *arg);

/**
 * scan_nonzero() - the next word that is not 0, in memory that may be large and mostly untouched
 * @v: zero-initialized before the first of several calls
 * @at: where to begin, a multiple of 8; set to where it is
 * Return: the word, or 0: there is none before @end.
 */
uint64_t scan_nonzero(struct image *img, struct image_view *v, uint64_t *at, uint64_t end);

/* Is @addr in readable and writable private memory, so that a live pointer of an allocator's data
 * can go there? */
bool scan_writable(const struct image *img, uint64_t addr);

/* Is all of [@start, @end) in such memory?  Ranges that an allocator claims must be. */
bool scan_all_writable(const struct image *img, uint64_t start, uint64_t end);

/* Is a file mapped whose name has @library in it? */
bool scan_has_library(const struct image *img, const char *library);

/**
 * scan_doubt_threads() - a thread inside the allocator may hold blocks on their way between caches
 * @library: part of the name of the allocator's file, such as "jemalloc"
 * Such blocks count as live and no counter shows it; so @heap is not exact then.  Linked statically
 * the allocator's code cannot be told from the program's, and nothing is said.
 */
void scan_doubt_threads(struct image *img, const char *library, struct heap *heap);

#endif
