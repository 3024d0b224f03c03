/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The secret that the sender and the receiver of recordings share. */
#ifndef STREAM_TOKEN_H
#define STREAM_TOKEN_H

#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

#define TOKEN_LEAST 16u
#define TOKEN_MOST  1024u

struct token {
	size_t n;
	uint8_t bytes[TOKEN_MOST];
};

/**
 * token_read() - read a token file
 * White space at its end is not part of the token.
 * Return: 0, or a negative errno with @err: it cannot be read, others than its owner can, or it is too short or
 * too long.
 */
int token_read(const char *path, struct token *token, struct mp_err *err);
/* Writes a new random token to @path, mode 0600, which must not exist.  Return: 0, or a negative errno with
 * @err. */
int token_create(const char *path, struct mp_err *err);

#endif
