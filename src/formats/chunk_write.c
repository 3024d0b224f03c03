/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/chunk_write.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define ZSTD_LEVEL 1
#define FRAME_MIN  4096u /* payload bytes below which parts share a frame */

int chunk_writer_init(struct chunk_writer *w, size_t part_max, size_t payload_max)
{
	w->packed_size =
	    CHUNK_HEADER + ZSTD_compressBound(payload_max) + COLUMNS * ZSTD_compressBound(0);
	w->joined = malloc(FRAME_MIN + part_max);
	w->packed = malloc(w->packed_size);
	w->zstd = ZSTD_createCCtx();
	return w->joined && w->packed && w->zstd ? 0 : -ENOMEM;
}

static void set_error(struct chunk_writer *w, int error)
{
	__atomic_store_n(&w->error, error, __ATOMIC_RELAXED);
}

int chunk_writer_error(const struct chunk_writer *w)
{
	return __atomic_load_n(&w->error, __ATOMIC_RELAXED);
}

uint64_t chunk_writer_bytes(const struct chunk_writer *w)
{
	return __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
}

static void write_all(struct chunk_writer *w, const void *buf, size_t n)
{
	const char *p = buf;

	while (n) {
		ssize_t put_n = write(w->fd, p, n);

		if (put_n < 0 && errno == EINTR)
			continue;
		if (put_n <= 0) {
			set_error(w, put_n ? -errno : -ENOSPC);
			return;
		}
		p += put_n;
		n -= (size_t)put_n;
		__atomic_store_n(&w->bytes, w->bytes + (uint64_t)put_n, __ATOMIC_RELAXED);
	}
}

int chunk_writer_begin(struct chunk_writer *w, int fd)
{
	uint8_t head[12];

	w->fd = fd;
	memcpy(head, CHUNK_FILE_MAGIC, 8);
	put_le32(head + 8, CHUNK_FILE_VERSION);
	write_all(w, head, sizeof(head));
	return w->error;
}

/* Compresses the parts into w->packed.  @raw: set to their bytes.  Return: the bytes stored; 0: failed. */
static size_t pack(struct chunk_writer *w, const struct raw_chunk *c, size_t *raw)
{
	size_t n = 0, at = CHUNK_HEADER;

	*raw = 0;
	for (unsigned int i = 0; i < c->parts; i++) {
		const uint8_t *frame = c->part[i].at;
		bool last = i + 1 == c->parts;
		size_t stored;

		if (n || (!last && c->part[i].n < FRAME_MIN)) {
			memcpy(w->joined + n, frame, c->part[i].n);
			frame = w->joined;
		}
		n += c->part[i].n;
		if (last ? i && !n : n < FRAME_MIN)
			continue;
		stored = ZSTD_compressCCtx(w->zstd, w->packed + at, w->packed_size - at, frame, n,
					   ZSTD_LEVEL);
		if (ZSTD_isError(stored))
			return 0;
		at += stored;
		*raw += n;
		n = 0;
	}
	return at - CHUNK_HEADER;
}

void chunk_write(struct chunk_writer *w, const struct raw_chunk *c)
{
	uint8_t *h = w->packed;
	size_t raw, stored;

	/* What was written last can be a part of a chunk. */
	if (w->error)
		return;
	stored = pack(w, c, &raw);
	if (!stored) {
		set_error(w, -EIO);
		return;
	}
	put_le32(h, CHUNK_MAGIC);
	put_le32(h + 4, c->type);
	put_le32(h + 8, (uint32_t)raw);
	put_le32(h + 12, (uint32_t)stored);
	put_le32(h + 16, (uint32_t)crc32(0, h + CHUNK_HEADER, (uInt)stored));
	put_le32(h + 20, (uint32_t)crc32(0, h, 20));
	/* One write, so that a file that is cut off has at most one partial chunk. */
	write_all(w, h, CHUNK_HEADER + stored);
}

int chunk_writer_end(struct chunk_writer *w)
{
	if (w->fd >= 0 && close(w->fd) && !w->error)
		w->error = -errno;
	ZSTD_freeCCtx(w->zstd);
	free(w->joined);
	free(w->packed);
	return w->error;
}
