/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Recordings, in every report format, by their index, compared, stripped and symbolized.  The
 * second byte selects options.  If the first byte is 0, the rest is a file.  Else the rest is
 * chunks, each a 2-byte length and its payload; this program adds headers with valid checksums. The
 * highest bit of the length makes the chunk an index, the next bit a part of a binary, both events.
 */
#include <zlib.h>
#include <zstd.h>
#include "cmd/formats.h"
#include "formats/chunk.h"
#include "fuzz.h"
#include "model/filter/filter.h"
#include "model/model.h"
#include "record/culling/cull_file.h"
#include "model/contents.h"
#include "export/diff.h"
#include "model/sums/quick.h"
#include "export/symbolize.h"

enum { INDEX_BIT = 0x8000, BINARY_BIT = 0x4000, EVENT_BITS = INDEX_BIT | BINARY_BIT };

static size_t put_chunk(uint8_t *file, size_t at, size_t room, enum chunk_type type,
			const uint8_t *raw, size_t n)
{
	uint8_t *h = file + at;
	size_t stored;

	if (room - at < CHUNK_HEADER + ZSTD_compressBound(n))
		return at;
	stored = ZSTD_compress(h + CHUNK_HEADER, room - at - CHUNK_HEADER, raw, n, 1);
	put_le32(h, CHUNK_MAGIC);
	put_le32(h + 4, type);
	put_le32(h + 8, (uint32_t)n);
	put_le32(h + 12, (uint32_t)stored);
	put_le32(h + 16, (uint32_t)crc32(0, h + CHUNK_HEADER, (uInt)stored));
	put_le32(h + 20, (uint32_t)crc32(0, h, 20));
	return at + CHUNK_HEADER + stored;
}

static size_t frame(struct input *in, uint8_t *file, size_t room)
{
	static const uint8_t info[24] = {1}; /* id, numbers, no texts */
	size_t at = 12;

	memcpy(file, CHUNK_FILE_MAGIC, 8);
	put_le32(file + 8, CHUNK_FILE_VERSION);
	at = put_chunk(file, at, room, CHUNK_INFO, info, sizeof(info));
	while (in->left) {
		size_t n = input_number(in, 2);
		enum chunk_type type = (n & EVENT_BITS) == EVENT_BITS ? CHUNK_EVENTS
				       : n & INDEX_BIT		      ? CHUNK_INDEX
				       : n & BINARY_BIT		      ? CHUNK_BINARY
								      : CHUNK_ITEMS;

		n &= BINARY_BIT - 1;
		n = n < in->left ? n : in->left;
		at = put_chunk(file, at, room, type, in->at, n);
		in->at += n;
		in->left -= n;
	}
	return put_chunk(file, at, room, CHUNK_END, NULL, 0);
}

/* Both halves of the choice select the format, as some values of the lower one select something else. */
_Static_assert(NFORMATS <= 16, "some format would not be reached");

static void report_all(const char *path, uint32_t choice)
{
	struct format_request r = {.cost = (int)(choice >> 4) % 5,
				   .leaks = choice & 0x80,
				   .top = 5,
				   .least = 1,
				   .by = (enum group_by)((choice >> 8) % GROUP_BYS),
				   .peek = "f",
				   .annotate = "c",
				   .format = (enum format)((choice + (choice >> 4)) % NFORMATS)};
	struct model_options o = {.blocks = choice & 0x80};
	struct mp_err err = {0};
	struct filter filter;
	struct model m;
	FILE *out;

	filter_init(&filter);
	if (choice & 0x08 && !filter_set(&filter, "lifetime", "only_leaked", &err))
		o.filter = &filter;
	if (model_load(path, &o, &m, &err)) {
		filter_free(&filter);
		return;
	}
	m.shown.full = choice & 0x800;
	m.shown.lines = choice & 0x1000;
	out = fopen("/dev/null", "w");
	if (out) {
		format_write(&m, &r, out, &err);
		fclose(out);
	}
	model_free(&m);
	filter_free(&filter);
}

static void report_index(const char *path, uint32_t choice)
{
	static const enum format formats[] = {FORMAT_TEXT, FORMAT_TREE, FORMAT_COLLAPSED,
					      FORMAT_FLAMEGRAPH};
	struct format_request r = {.top = 5, .cost = COST_LEAKED, .format = formats[choice % 4]};
	struct mp_err err = {0};
	struct model m;
	FILE *out;

	if (quick_load(path, &m, &err))
		return;
	out = fopen("/dev/null", "w");
	if (out) {
		format_write(&m, &r, out, &err);
		fclose(out);
	}
	model_free(&m);
}

static void compare(const char *path, uint32_t choice)
{
	struct diff_side side[2] = {{0}};
	struct mp_err err = {0};
	struct model m;
	struct diff d;
	FILE *out;

	if (model_load(path, NULL, &m, &err))
		return;
	side[0].m = side[1].m = &m;
	side[0].has_moment = true;
	side[0].at_ns = m.facts.end_ns / 2;
	out = fopen("/dev/null", "w");
	if (out && !diff_make(&side[0], &side[1], (enum cost)(choice % 5), &d, &err)) {
		diff_text(&d, 5, out);
		diff_json(&d, out);
		diff_flame(&d, out);
		diff_folded(&d, out);
		diff_free(&d);
	}
	if (out)
		fclose(out);
	model_free(&m);
}

static void copy(const char *path, uint32_t choice)
{
	struct symbolize_result result;
	struct mp_err err = {0};
	struct contents c;
	bool truncated;
	char to[64];

	snprintf(to, sizeof(to), "/tmp/memprof-fuzz-%d", (int)getpid());
	if (!contents_read(path, &c, &err))
		contents_free(&c);
	recording_strip(path, to, choice & 0x40 ? 1000 : UINT64_MAX, &truncated, &err);
	unlink(to);
	recording_symbolize(path, to,
			    &(struct symbolize_options){.anonymize = (enum anonymize)(choice % 3)},
			    &result, &err);
	unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint32_t whole, choice;
	uint8_t *file;
	char path[64];
	int fd;

	if (size < 2)
		return 0;
	whole = !input_number(&in, 1);
	choice = (uint32_t)input_number(&in, 1);
	if (whole) {
		fd = input_file(in.at, in.left, path);
	} else {
		size_t room = 4096 + 64 * size;

		file = malloc(room);
		if (!file)
			return 0;
		fd = input_file(file, frame(&in, file, room), path);
		free(file);
	}
	if (choice % 16 == 13)
		report_index(path, choice >> 4);
	else if (choice % 16 == 14)
		compare(path, choice >> 4);
	else if (choice % 16 == 15)
		copy(path, choice >> 4);
	else
		report_all(path, choice);
	close(fd);
	return 0;
}
