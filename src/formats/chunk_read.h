/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the chunks of a recording file and the values in them (formats/FORMAT.md).  The file can be
 * truncated, damaged or malicious: every length is checked before it is used. */
#ifndef FORMATS_CHUNK_READ_H
#define FORMATS_CHUNK_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "formats/chunk.h"
#include "lib/err.h"

struct chunk_file {
	int fd;
	uint64_t offset, size; /* of the next chunk; of the file when it was opened */
	uint8_t *raw;	       /* payload of the last chunk: n bytes, read up to at */
	size_t n, at, cap;
	bool bad; /* the payload does not decode */
};

struct chunk_header {
	uint32_t type, raw, stored, crc;
};

/* Opens a recording and checks its file header.  Return: 0 with f->offset at the first chunk, or a
 * negative errno with @err filled (MP_EXIT_RECORDING); chunk_file_close() in both cases. */
int chunk_file_open(struct chunk_file *f, const char *path, struct mp_err *err);
void chunk_file_close(struct chunk_file *f);

/* The following return NULL, or a message why the file cannot be read further. */
/* Reads the header of the chunk at @offset. */
const char *chunk_header(const struct chunk_file *f, uint64_t offset, struct chunk_header *h);
/* Decompresses the chunk at f->offset and advances past it. */
const char *chunk_payload(struct chunk_file *f, const struct chunk_header *h);
/* Advances past the chunk at f->offset without reading its payload. */
const char *chunk_pass(struct chunk_file *f, const struct chunk_header *h);

/* The following read the next value of the payload.  At its end they return 0 and set f->bad. */
static inline uint8_t chunk_u8(struct chunk_file *f)
{
	if (f->at >= f->n) {
		f->bad = true;
		return 0;
	}
	return f->raw[f->at++];
}

static inline uint64_t chunk_varint(struct chunk_file *f)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		uint8_t b = chunk_u8(f);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	f->bad = true;
	return 0;
}

static inline void chunk_bytes(struct chunk_file *f, void *p, size_t n)
{
	if (n > f->n - f->at) {
		f->bad = true;
		memset(p, 0, n);
		return;
	}
	memcpy(p, f->raw + f->at, n);
	f->at += n;
}

#endif
