/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compresses the chunks of a recording and writes them to its file, in a thread of its own if wanted. */
#ifndef FORMATS_CHUNK_WRITE_H
#define FORMATS_CHUNK_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <zstd.h>
#include "formats/chunk.h"
#include "formats/event_code.h"
#include "lib/handover.h"

/* A chunk that is not compressed yet.  Its parts follow one another in the payload; they compress better
 * apart. */
struct raw_chunk {
	enum chunk_type type;
	unsigned int parts;
	struct {
		const uint8_t *at;
		size_t n;
	} part[COLUMNS];
};

/* Zeroed with @fd -1: no file.  Must stay where it is. */
struct chunk_writer {
	int fd, error;	/* @error, @bytes: set by the thread that writes */
	uint64_t bytes; /* written */
	ZSTD_CCtx *zstd;
	uint8_t *joined, *packed; /* small parts in one frame; the chunk as it is written */
	size_t packed_size;
	struct handover behind;
	struct raw_chunk chunk[2]; /* the slots of @behind */
};

/* Allocates memory for chunks of up to @payload_max bytes, each part up to @part_max.  Return: 0 or -ENOMEM;
 * chunk_writer_end() in both cases. */
int chunk_writer_init(struct chunk_writer *w, size_t part_max, size_t payload_max);
/* Writes the head of the file.  @fd: owned by @w, also if it fails.  Return: 0 or a negative errno. */
int chunk_writer_begin(struct chunk_writer *w, int fd);
/* Makes a thread that does the rest.  To be called once.  Return: 0, or a negative errno: then chunk_write()
 * does it, as before. */
int chunk_writer_behind(struct chunk_writer *w);
/**
 * chunk_write() - write a chunk
 * @c: copied; its parts must remain until the next call of chunk_write() or chunk_writer_wait() returns
 *
 * After an error nothing more is written.
 *
 * Return: 0, or a negative errno if this chunk, or one before it, is known to have failed.
 */
int chunk_write(struct chunk_writer *w, const struct raw_chunk *c);
/* Waits until all chunks are in the file.  Return: 0 or the first error. */
int chunk_writer_wait(struct chunk_writer *w);
/* Return: the bytes of the file, of which those of the last chunk can be missing before
 * chunk_writer_wait(). */
uint64_t chunk_writer_bytes(const struct chunk_writer *w);
/* As chunk_writer_wait(), and closes the file and frees all that @w has. */
int chunk_writer_end(struct chunk_writer *w);

#endif
