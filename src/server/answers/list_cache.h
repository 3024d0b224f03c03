/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What /list says about each recording, as long as the file does not change: finding it out means
 * reading the file.  The process that answers /list lives on and has one thread.
 */
#ifndef SERVER_ANSWERS_LIST_CACHE_H
#define SERVER_ANSWERS_LIST_CACHE_H

#include <sys/stat.h>

/* Return: the text that was kept for this file as it is now; or NULL.  Valid until the next
 * list_cache_put(). */
const char *list_cache_get(const char *path, const struct stat *now);
/* Keeps @text, which becomes the property of the cache, in place of what it had for @path.  Without
 * memory nothing is kept. */
void list_cache_put(const char *path, const struct stat *of, char *text);

#endif
