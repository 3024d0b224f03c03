/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/chunk_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

int chunk_file_open(struct chunk_file *f, const char *path, struct mp_err *err)
{
	uint8_t head[12];
	uint32_t version;
	struct stat st;

	*f = (struct chunk_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (f->fd < 0 && (errno == EACCES || errno == EPERM))
		return mp_fail(err, MP_EXIT_PERMISSION, -errno,
			       "you are not permitted to read %s (%s); a recording belongs to the "
			       "user who made it: try sudo, or let that user change its owner",
			       path, strerror(errno));
	if (f->fd < 0)
		return mp_fail(err, MP_EXIT_RECORDING, -errno, "cannot open %s: %s", path,
			       strerror(errno));
	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) ||
	    pread(f->fd, head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head, CHUNK_FILE_MAGIC, 8))
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL, "%s is not a memprof recording",
			       path);
	version = get_le32(head + 8);
	if (version < CHUNK_FILE_OLDEST || version > CHUNK_FILE_VERSION)
		return mp_fail(err, MP_EXIT_RECORDING, -EPROTO,
			       "%s is a memprof recording of format version %u; this memprof reads "
			       "versions %u to %u",
			       path, version, CHUNK_FILE_OLDEST, CHUNK_FILE_VERSION);
	f->offset = sizeof(head);
	f->size = (uint64_t)st.st_size;
	return 0;
}

void chunk_file_close(struct chunk_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->raw);
	f->raw = NULL;
	f->fd = -1;
}

const char *chunk_header(const struct chunk_file *f, uint64_t offset, struct chunk_header *h)
{
	uint8_t b[CHUNK_HEADER];
	ssize_t got = pread(f->fd, b, sizeof(b), (off_t)offset);

	if (got == 0)
		return "it is still being written, or its recorder was killed";
	if (got != sizeof(b))
		return "cut off in a chunk header";
	*h = (struct chunk_header){get_le32(b + 4), get_le32(b + 8), get_le32(b + 12),
				   get_le32(b + 16)};
	if (get_le32(b) != CHUNK_MAGIC || get_le32(b + 20) != crc32(0, b, 20) ||
	    h->raw > CHUNK_MAX || h->stored > CHUNK_MAX)
		return "a damaged chunk header";
	return NULL;
}

static const char *unpack(struct chunk_file *f, const struct chunk_header *h, uint8_t *stored)
{
	ssize_t got = pread(f->fd, stored, h->stored, (off_t)(f->offset + CHUNK_HEADER));
	size_t n;

	if (got != (ssize_t)h->stored)
		return "cut off in a chunk";
	if (h->crc != crc32(0, stored, h->stored))
		return "a damaged chunk";
	n = ZSTD_decompress(f->raw, h->raw, stored, h->stored);
	return ZSTD_isError(n) || n != h->raw ? "a damaged chunk" : NULL;
}

const char *chunk_payload(struct chunk_file *f, const struct chunk_header *h)
{
	uint8_t *stored, *more;
	const char *why;

	if (h->raw > f->cap) {
		more = realloc(f->raw, h->raw);
		if (!more)
			return "out of memory";
		f->raw = more;
		f->cap = h->raw;
	}
	stored = malloc(h->stored ? h->stored : 1);
	why = stored ? unpack(f, h, stored) : "out of memory";
	free(stored);
	if (why)
		return why;
	f->offset += CHUNK_HEADER + h->stored;
	f->n = h->raw;
	f->at = 0;
	return NULL;
}

const char *chunk_pass(struct chunk_file *f, const struct chunk_header *h)
{
	if (f->offset + CHUNK_HEADER + h->stored > f->size)
		return "cut off in a chunk";
	f->offset += CHUNK_HEADER + h->stored;
	return NULL;
}
