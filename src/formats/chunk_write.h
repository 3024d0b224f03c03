/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compresses the chunks of a recording and writes them to its file. */
#ifndef FORMATS_CHUNK_WRITE_H
#define FORMATS_CHUNK_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <zstd.h>
#include "formats/chunk.h"
#include "formats/event_code.h"

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
	int fd, error;	/* another thread than the one that writes can read @error ... */
	uint64_t bytes; /* ... and @bytes, which are written */
	ZSTD_CCtx *zstd;
	uint8_t *joined, *packed; /* small parts in one frame; the chunk as it is written */
	size_t packed_size;
};

/* Allocates memory for chunks of up to @payload_max bytes, each part up to @part_max.  Return: 0 or -ENOMEM;
 * chunk_writer_end() in both cases. */
int chunk_writer_init(struct chunk_writer *w, size_t part_max, size_t payload_max);
/* Writes the head of the file.  @fd: owned by @w, also if it fails.  Return: 0 or a negative errno. */
int chunk_writer_begin(struct chunk_writer *w, int fd);
/* Writes a chunk.  After an error nothing more is written. */
void chunk_write(struct chunk_writer *w, const struct raw_chunk *c);
/* Return: 0 or the first error, a negative errno.  Any thread can call it, and the next. */
int chunk_writer_error(const struct chunk_writer *w);
/* Return: the bytes of the file. */
uint64_t chunk_writer_bytes(const struct chunk_writer *w);
/* Closes the file and frees all that @w has.  Return: as chunk_writer_error(). */
int chunk_writer_end(struct chunk_writer *w);

#endif
