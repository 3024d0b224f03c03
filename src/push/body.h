/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The request that brings a window to a destination, in the destination's protocol. */
#ifndef PUSH_BODY_H
#define PUSH_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include "export/window.h"
#include "push/destination.h"

struct file_hashes;
struct http_answer;
struct identity;
struct model;

struct body {
	char *query; /* appended to the URL; "" */
	char *bytes;
	size_t n;
};

/* Makes the body for a destination; for a directory, a file.  Return: 0 with @b, to be freed by body_free(); or a negative
 * errno. */
int body_make(enum destination_kind kind, struct model *m, const struct profile_window *w,
	      const struct identity *id, struct file_hashes *files, struct body *b);
void body_free(struct body *b);

/* Return: its Content-Type, and its Content-Encoding; NULL: none. */
const char *body_type(enum destination_kind kind);
const char *body_encoding(enum destination_kind kind);
/* Did a server that answered with success take all of it?  @why: set if not. */
bool body_accepted(enum destination_kind kind, const struct http_answer *a, char *why, size_t size);

#endif
