/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/output.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include "formats/chunk_read.h"
#include "lib/create.h"

#define BUFFER (128u << 10)

struct packer {
	FILE *file;
	bool stays; /* the file is not closed */
	z_stream gz;
	ZSTD_CCtx *zstd; /* NULL: use gzip */
	int error;
	unsigned char buf[BUFFER];
};

static void write_packed(struct packer *p, size_t n)
{
	if (fwrite(p->buf, 1, n, p->file) != n && !p->error)
		p->error = errno ? errno : EIO;
}

static void pack_gzip(struct packer *p, const char *data, size_t n, bool end)
{
	int ret;

	p->gz.next_in = (unsigned char *)(uintptr_t)data;
	p->gz.avail_in = (unsigned int)n;
	do {
		p->gz.next_out = p->buf;
		p->gz.avail_out = BUFFER;
		ret = deflate(&p->gz, end ? Z_FINISH : Z_NO_FLUSH);
		write_packed(p, BUFFER - p->gz.avail_out);
	} while (end ? ret == Z_OK : !p->gz.avail_out);
}

static void pack_zstd(struct packer *p, const char *data, size_t n, bool end)
{
	ZSTD_inBuffer in = {data, n, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {p->buf, BUFFER, 0};

		left = ZSTD_compressStream2(p->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left)) {
			p->error = p->error ? p->error : EIO;
			return;
		}
		write_packed(p, out.pos);
	} while (end ? left : in.pos < in.size);
}

static void pack(struct packer *p, const char *data, size_t n, bool end)
{
	if (p->zstd)
		pack_zstd(p, data, n, end);
	else
		pack_gzip(p, data, n, end);
}

static ssize_t packer_write(void *ctx, const char *data, size_t n)
{
	struct packer *p = ctx;

	if (!p->error)
		pack(p, data, n, false);
	errno = p->error;
	return p->error ? 0 : (ssize_t)n;
}

static int packer_close(void *ctx)
{
	struct packer *p = ctx;
	int error;

	if (!p->error)
		pack(p, "", 0, true);
	if (p->zstd)
		ZSTD_freeCCtx(p->zstd);
	else
		deflateEnd(&p->gz);
	error = p->error;
	if ((p->stays ? fflush(p->file) : fclose(p->file)) && !error)
		error = errno;
	free(p);
	errno = error;
	return error ? -1 : 0;
}

static FILE *packed(FILE *file, bool zstd, bool stays)
{
	cookie_io_functions_t io = {.write = packer_write, .close = packer_close};
	struct packer *p = calloc(1, sizeof(*p));
	FILE *out;

	if (!p)
		return NULL;
	p->file = file;
	p->stays = stays;
	if (zstd)
		p->zstd = ZSTD_createCCtx();
	if (zstd ? !p->zstd
		 : deflateInit2(&p->gz, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
				Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return NULL;
	}
	out = fopencookie(p, "w", io);
	if (out)
		return out;
	if (zstd)
		ZSTD_freeCCtx(p->zstd);
	else
		deflateEnd(&p->gz);
	free(p);
	return NULL;
}

FILE *output_gzip(FILE *to)
{
	return packed(to, false, true);
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && !strcmp(s + n - k, end);
}

int output_refuse_terminal(FILE *out, struct mp_err *err)
{
	if (!isatty(fileno(out)))
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -ENOTTY,
		       "this format is binary and is not written to a terminal; name a file (-o "
		       "FILE), or pipe it into the program that reads it");
}

bool output_is_recording(const char *path)
{
	struct chunk_file f;
	struct mp_err err = {0};
	int ret = chunk_file_open(&f, path, &err);

	chunk_file_close(&f);
	return !ret || ret == -EPROTO;
}

FILE *output_open(const char *path, bool gzip, struct mp_err *err)
{
	bool standard = !path || !strcmp(path, "-"), zstd = !standard && ends_in(path, ".zst");
	FILE *file = stdout, *out;
	int ret = standard ? 0 : create_stream(path, &file);

	if (ret) {
		mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write %s: %s", path, create_error(ret));
		return NULL;
	}
	if (gzip && output_refuse_terminal(file, err)) {
		if (!standard)
			fclose(file);
		return NULL;
	}
	if (!gzip && !zstd && (standard || !ends_in(path, ".gz")))
		return file;
	out = packed(file, zstd && !gzip, standard);
	if (out)
		return out;
	if (!standard)
		fclose(file);
	mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	return NULL;
}

int output_close(FILE *out)
{
	int error = ferror(out) ? EIO : 0;

	errno = 0;
	if (out == stdout ? fflush(out) : fclose(out))
		error = errno ? errno : EIO;
	return -error;
}
