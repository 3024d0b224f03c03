/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds an allocator's static data without symbols, by properties that it must have. */
#ifndef HEAPS_SCAN_H
#define HEAPS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "heaps/heap.h"
#include "snapshot/image.h"

/*
 * A range of a module's writable data, .data and .bss as mapped; at most SCAN_MAX_BYTES.
 */
#define SCAN_MAX_BYTES (256ul << 20)
struct scan_data {
	struct image *img;
	uint64_t start;
	const uint64_t *words;
	size_t n; /* words that were readable */
};

/**
 * scan_modules() - visit the data of every module, from the program to the last map
 * @visit: returns 0 to continue, anything else to end
 * Return: what @visit returned last, 0 if there is no data, or -ENOMEM.
 */
int scan_modules(struct image *img, int (*visit)(const struct scan_data *data, void *arg),
		 void *arg);

/**
 * scan_modules_with() - as scan_modules(), for modules whose constants contain @text
 * @text: part of a message that is linked into a module together with the allocator
 * @bytes: modules with less data are left out
 * A search through all modules would take minutes in a large process.  Modules whose constants
 * cannot be read are visited, too.
 */
int scan_modules_with(struct image *img, const char *text, size_t bytes,
		      int (*visit)(const struct scan_data *data, void *arg), void *arg);

/* Does a module with at least @bytes of data have @text among its constants?  One whose constants
 * cannot be read does not. */
bool scan_has_constant(struct image *img, const char *text, size_t bytes);

/**
 * scan_nonzero() - find the next word that is not 0, in memory that can be large and mostly
 * untouched
 * @v: zero-initialized before the first of several calls
 * @at: where to begin, a multiple of 8; set to the word's address
 * Return: the word, or 0: there is none before @end.
 */
uint64_t scan_nonzero(struct image *img, struct image_view *v, uint64_t *at, uint64_t end);

/* Is @addr in readable and writable private memory?  Live pointers in an allocator's data lead
 * there. */
bool scan_writable(const struct image *img, uint64_t addr);

/* Is all of [@start, @end) in private memory without a file?  Ranges that an allocator claims must
 * be. */
bool scan_all_writable(const struct image *img, uint64_t start, uint64_t end);

/* Is a file mapped whose name contains @library? */
bool scan_has_library(const struct image *img, const char *library);

/**
 * scan_doubt_threads() - clear @heap->exact if a thread is executing in the allocator
 * @library: part of the name of the allocator's file, such as "jemalloc"
 * Such a thread might be moving blocks between caches.  They count as live, and no counter shows
 * it.  A change half made can look like damage, so none is reported.  If the allocator is linked
 * statically, its code cannot be told from the program's, and nothing is done.
 */
void scan_doubt_threads(struct image *img, const char *library, struct heap *heap);

#endif
