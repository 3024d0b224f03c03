/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies of texts, each once, which stay valid until the list is freed.  For few texts: a search reads all. */
#ifndef LIB_TEXTS_H
#define LIB_TEXTS_H

#include "lib/vec.h"

typedef VEC(char *) texts_t;

/* Return: the copy of @text in the list, which is added if there is none; NULL if out of memory. */
const char *texts_keep(texts_t *texts, const char *text);
void texts_free(texts_t *texts);

#endif
