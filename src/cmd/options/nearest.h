/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the word that a user probably meant. */
#ifndef CMD_OPTIONS_NEAREST_H
#define CMD_OPTIONS_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word;
	size_t n;	  /* bytes of @word that count */
	const char *best; /* the nearest candidate so far; NULL: none is near */
	size_t distance;  /* of @best */
};

/* @n: bytes of @word that count.  @word must exist as long as the result is used. */
struct nearest nearest_to(const char *word, size_t n);

/**
 * nearest_offer() - compare with one more candidate
 *
 * The measure is the optimal string alignment distance: the number of letters to insert, remove,
 * replace, or swap with their neighbour (L. Boytsov, Indexing methods for approximate dictionary
 * searching, 2011, section 2.1).  A candidate is near if at most a third of the letters differ, or
 * if the word is its beginning.
 */
void nearest_offer(struct nearest *s, const char *candidate);

#endif
