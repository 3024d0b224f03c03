/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/binaries.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "lib/hex.h"
#include "lib/intern.h"

#define MAX_BINARIES 10000

/* ------------------------------------------------------------------ chunks -- */

/* A decoded chunk of a binary. */
struct binary_piece {
	char path[PATH_MAX];
	struct mp_binary of; /* path points to the one above, data into the chunk */
};

static bool decode(struct chunk_file *f, struct binary_piece *p)
{
	struct mp_binary *of = &p->of;
	uint64_t length = chunk_varint(f);

	if (!length || length > sizeof(p->path))
		return false;
	chunk_bytes(f, p->path, length - 1);
	p->path[length - 1] = 0;
	of->path = p->path;
	of->build_id_len = chunk_u8(f);
	if (of->build_id_len > sizeof(of->build_id))
		return false;
	chunk_bytes(f, of->build_id, of->build_id_len);
	of->size = chunk_varint(f);
	of->offset = chunk_varint(f);
	of->data = f->raw + f->at;
	of->n = f->n - f->at;
	return !f->bad && of->n && of->offset < of->size && of->n <= of->size - of->offset &&
	       !memchr(p->path, 0, length - 1);
}

/* Reads the next chunk of a binary.  Return: 1 with @p filled, 0 if it is damaged, or -1 at the
 * end. */
static int next_piece(struct chunk_file *f, uint64_t *at, struct binary_piece *p)
{
	struct chunk_header h;

	for (;;) {
		*at = f->offset;
		if (chunk_header(f, f->offset, &h) || h.type == CHUNK_END)
			return -1;
		if (h.type == CHUNK_BINARY)
			break;
		if (chunk_pass(f, &h))
			return -1;
	}
	f->bad = false;
	if (chunk_payload(f, &h))
		return chunk_pass(f, &h) ? -1 : 0;
	return decode(f, p);
}

/* ------------------------------------------------------------------ listing -- */

static bool same_file(const struct binary *a, const uint8_t *build_id, uint8_t length,
		      const char *path)
{
	if (a->build_id_len != length)
		return false;
	return length ? !memcmp(a->build_id, build_id, length) : path && !strcmp(a->path, path);
}

bool binary_is_of(const struct binary *b, const struct mp_module *m)
{
	return same_file(b, m->build_id, m->build_id_len, m->path);
}

static int begin_binary(struct binaries *b, const struct binary_piece *p, uint64_t at)
{
	struct binary fresh = {.build_id_len = p->of.build_id_len, .size = p->of.size, .at = at};
	char *path;

	if (b->list.n == MAX_BINARIES)
		return -E2BIG;
	memcpy(fresh.build_id, p->of.build_id, p->of.build_id_len);
	vec_for_each (&b->list, known) {
		if (same_file(known, fresh.build_id, fresh.build_id_len, p->path))
			fresh.wrong = "is in the recording twice";
	}
	path = strdup(p->path);
	fresh.path = path;
	if (path && !vec_push(&b->list, fresh))
		return 0;
	free(path);
	return -ENOMEM;
}

static int see(struct binaries *b, const struct binary_piece *p, uint64_t at)
{
	struct binary *last = b->list.n ? &b->list.at[b->list.n - 1] : NULL;

	if (!last || !p->of.offset ||
	    !same_file(last, p->of.build_id, p->of.build_id_len, p->path)) {
		int ret = begin_binary(b, p, at);

		if (ret)
			return ret;
		last = &b->list.at[b->list.n - 1];
	}
	if (p->of.offset == last->have && p->of.size == last->size)
		last->have += p->of.n;
	return 0;
}

static int read_pieces(struct binaries *b)
{
	struct binary_piece p;
	uint64_t at;
	int ret = 0, got;

	while (!ret && (got = next_piece(&b->file, &at, &p)) >= 0) {
		if (got)
			ret = see(b, &p, at);
		else
			b->damaged++;
		b->stored += b->file.offset - at;
	}
	vec_for_each (&b->list, binary) {
		if (binary->have != binary->size && !binary->wrong)
			binary->wrong = "is damaged or incomplete";
	}
	return ret;
}

int binaries_open(struct binaries *b, const char *recording, struct mp_err *err)
{
	int ret;

	*b = (struct binaries){0};
	ret = chunk_file_open(&b->file, recording, err);
	if (ret)
		return ret;
	ret = read_pieces(b);
	if (ret == -E2BIG)
		return mp_fail(err, MP_EXIT_RECORDING, ret,
			       "the recording is corrupt: it has more than %d binaries",
			       MAX_BINARIES);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory") : 0;
}

void binaries_close(struct binaries *b)
{
	chunk_file_close(&b->file);
	vec_for_each (&b->list, binary)
		free((char *)binary->path);
	vec_free(&b->list);
}

/* ------------------------------------------------------------------ reading one binary -- */

int binaries_read(struct binaries *b, const struct binary *which, binary_taker take, void *ctx)
{
	struct binary_piece p;
	uint64_t at;
	int ret = 0;

	b->file.offset = which->at;
	for (uint64_t have = 0; !ret && have < which->size; have += p.of.n) {
		if (next_piece(&b->file, &at, &p) <= 0 || p.of.offset != have ||
		    p.of.size != which->size)
			return -EIO;
		ret = take(ctx, p.of.data, p.of.n);
	}
	return ret;
}

struct copying {
	struct mpf_writer *w;
	struct mp_binary of;
};

static int put_data(void *ctx, const void *data, size_t n)
{
	struct copying *c = ctx;
	int ret;

	c->of.data = data;
	c->of.n = n;
	ret = mpf_put_binary(c->w, &c->of);
	c->of.offset += n;
	return ret;
}

static int copy(struct binaries *b, const struct binary *which, struct mpf_writer *w)
{
	struct copying c = {w, {which->path, {0}, which->build_id_len, which->size, 0, NULL, 0}};

	memcpy(c.of.build_id, which->build_id, which->build_id_len);
	return binaries_read(b, which, put_data, &c);
}

static bool is_new(struct intern *have, const struct binary *b)
{
	char id[2 * sizeof(b->build_id) + 1];
	bool fresh = false;

	hex_text(b->build_id, b->build_id_len, id);
	return intern_text(have, b->build_id_len ? id : b->path, &fresh) && fresh;
}

int binaries_copy(const char *recording, struct mpf_writer *w, struct intern *have, bool *left_out,
		  struct mp_err *err)
{
	struct binaries b;
	int ret = binaries_open(&b, recording, err), failed = 0;

	*left_out = b.damaged != 0;
	for (size_t i = 0; !ret && !failed && i < b.list.n; i++) {
		const struct binary *which = &b.list.at[i];

		*left_out |= which->wrong != NULL;
		if (!which->wrong && is_new(have, which))
			failed = copy(&b, which, w);
	}
	binaries_close(&b);
	return failed ? mp_fail(err, MP_EXIT_OUTPUT, failed, "cannot copy the binaries of %s: %s",
				recording, strerror(-failed))
		      : ret;
}

void binaries_left_out(char *list, size_t size, const char *path, const char *why)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s (%s)", n ? "; " : "", path, why);
}
