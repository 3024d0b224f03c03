/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The binaries that a recording contains (--embed): the files of its modules, so that it can be
 * symbolized on a machine that does not have them. mpf_next() never returns them.
 */
#ifndef FORMATS_BINARIES_H
#define FORMATS_BINARIES_H

#include "formats/chunk_read.h"
#include "formats/file.h"
#include "lib/vec.h"

struct binary {
	const char *path; /* same as the module's path */
	uint8_t build_id[32];
	uint8_t build_id_len; /* 0: the file has no build id */
	uint64_t size;	      /* bytes */
	uint64_t at;	      /* file offset of its first chunk */
	uint64_t have;	      /* bytes that are present, from its beginning on */
	const char *wrong;    /* why it must not be used; NULL: it is complete and contained once */
};

struct binaries {
	struct chunk_file file;
	VEC(struct binary) list;
	uint64_t damaged; /* damaged chunks, of unknown files */
	uint64_t stored;  /* bytes of the recording that binaries occupy */
};

/* Return: whether @b is the file of module @m, by build id, or by path if they have none. */
bool binary_is_of(const struct binary *b, const struct mp_module *m);

/**
 * binaries_open() - list the binaries of a recording; reads all of them once to check them
 *
 * Return: 0 with @b filled, or a negative errno with @err filled; binaries_close() in both cases.
 */
int binaries_open(struct binaries *b, const char *recording, struct mp_err *err);
void binaries_close(struct binaries *b);

/* Receives the next @n bytes of a file.  Return: 0, or a negative errno to stop. */
typedef int (*binary_taker)(void *ctx, const void *data, size_t n);

/* Passes all bytes of a complete binary to @take.  Return: 0, the error that @take returned, or
 * -EIO if the recording has changed in the meantime. */
int binaries_read(struct binaries *b, const struct binary *which, binary_taker take, void *ctx);

/**
 * binaries_copy() - append the binaries of @recording to @w
 * @have: build ids or paths of the binaries already in @w; those copied are added
 * @left_out: set to whether some are damaged or incomplete
 *
 * Return: 0, or a negative errno with @err filled.
 */
struct intern;
int binaries_copy(const char *recording, struct mpf_writer *w, struct intern *have, bool *left_out,
		  struct mp_err *err);

/* Appends the @path of a file that was left out and the reason @why to the text in @list, a buffer
 * of @size bytes.  The list is initially empty and is truncated if it does not fit. */
void binaries_left_out(char *list, size_t size, const char *path, const char *why);

#endif
