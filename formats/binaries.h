/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The binaries that a recording carries (--embed): files of modules, so that it can be symbolized
 * where there are none.  Readers of its items never see them.
 */
#ifndef FORMATS_BINARIES_H
#define FORMATS_BINARIES_H

#include "formats/chunk_read.h"
#include "formats/file.h"
#include "lib/vec.h"

struct binary {
	const char *path; /* as the module's */
	uint8_t build_id[32];
	uint8_t build_id_len; /* 0: it has none */
	uint64_t size;	      /* bytes */
	uint64_t at;	      /* of its first chunk */
	uint64_t have;	      /* bytes that are there from its beginning on */
	const char *wrong;    /* why it must not be used; NULL: it is whole and there once */
};

struct binaries {
	struct chunk_file file;
	VEC(struct binary) list;
	uint64_t damaged; /* chunks; whose they are is not known */
	uint64_t stored;  /* bytes of the recording that they take */
};

/* Is it the file of that module?  By build id, or by path where there is none. */
bool binary_is_of(const struct binary *b, const struct mp_module *m);

/**
 * binaries_open() - which there are; all of them are read once
 *
 * Return: 0 with @b filled, or a negative errno with @err filled; binaries_close() in both cases.
 */
int binaries_open(struct binaries *b, const char *recording, struct mp_err *err);
void binaries_close(struct binaries *b);

/* Takes so many bytes of a file, one piece behind the other.  Return: 0, or a negative errno that
 * ends it. */
typedef int (*binary_taker)(void *ctx, const void *data, size_t n);

/* Hands all bytes of a whole one to @take.  Return: 0, what @take returned, or -EIO when the
 * recording changed meanwhile. */
int binaries_read(struct binaries *b, const struct binary *which, binary_taker take, void *ctx);

/**
 * binaries_copy() - append those of another recording
 * @have: build ids and paths of those that are in @w already, and then of these, too
 * @left_out: set to whether some are damaged or not whole
 *
 * Return: 0, or a negative errno with @err filled.
 */
struct intern;
int binaries_copy(const char *recording, struct mpf_writer *w, struct intern *have, bool *left_out,
		  struct mp_err *err);

/* Adds a file that was left out, and why, to the list of @size bytes in @list, which begins empty;
 * what does not fit is cut off. */
void binaries_left_out(char *list, size_t size, const char *path, const char *why);

#endif
