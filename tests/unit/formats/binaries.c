/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Binaries in a recording: complete ones are read back byte by byte, others are never used, and
 * they do not affect the reading of items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/binaries.h"
#include "lib/intern.h"

#define LARGE (2 * MPF_BINARY_PIECE + 12345)

static char path[] = "/tmp/memprof-unit-XXXXXX", copy_path[] = "/tmp/memprof-unit-XXXXXX";
static uint8_t content[LARGE];

static struct mpf_writer *create(const char *to)
{
	struct mp_info info = {.pid = 42, .machine = 62, .executable = "/bin/x", .cmdline = "x"};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(to, &info, &w, NULL), 0);
	return w;
}

/* @id 0: the binary has no build id. */
static struct mp_binary binary(const char *name, uint8_t id, uint64_t size)
{
	return (struct mp_binary){
	    .path = name, .build_id = {id}, .build_id_len = id != 0, .size = size};
}

static void put(struct mpf_writer *w, struct mp_binary b, uint64_t from, uint64_t to)
{
	for (b.offset = from; b.offset < to; b.offset += b.n) {
		b.n = to - b.offset < MPF_BINARY_PIECE ? to - b.offset : MPF_BINARY_PIECE;
		b.data = content + b.offset;
		assert_int_equal(mpf_put_binary(w, &b), 0);
	}
}

static int compare(void *ctx, const void *data, size_t n)
{
	size_t *at = ctx;

	assert_memory_equal(data, content + *at, n);
	*at += n;
	return 0;
}

static void check_whole(struct binaries *b, size_t i, const char *name, uint64_t size)
{
	size_t at = 0;

	assert_true(i < b->list.n);
	assert_string_equal(b->list.at[i].path, name);
	assert_null(b->list.at[i].wrong);
	assert_int_equal(binaries_read(b, &b->list.at[i], compare, &at), 0);
	assert_int_equal(at, size);
}

static void open_them(struct binaries *b, const char *from)
{
	struct mp_err err = {0};

	assert_int_equal(binaries_open(b, from, &err), 0);
}

static void whole_ones_are_read(void **state)
{
	struct mpf_writer *w = create(path);
	struct binaries b;

	(void)state;
	put(w, binary("/large", 7, LARGE), 0, LARGE);
	put(w, binary("/small", 8, 1), 0, 1);
	put(w, binary("/none", 0, 100), 0, 100);
	assert_int_equal(mpf_close(w), 0);
	open_them(&b, path);
	assert_int_equal(b.list.n, 3);
	assert_int_equal(b.damaged, 0);
	/* They can be read in any order. */
	check_whole(&b, 1, "/small", 1);
	check_whole(&b, 0, "/large", LARGE);
	check_whole(&b, 2, "/none", 100);
	assert_true(
	    binary_is_of(&b.list.at[0], &(struct mp_module){.build_id = {7}, .build_id_len = 1}));
	assert_true(binary_is_of(&b.list.at[2], &(struct mp_module){.path = "/none"}));
	assert_false(binary_is_of(&b.list.at[0], &(struct mp_module){.path = "/large"}));
	assert_false(
	    binary_is_of(&b.list.at[2],
			 &(struct mp_module){.path = "/none", .build_id = {7}, .build_id_len = 1}));
	binaries_close(&b);
}

static void what_is_not_whole_is_not_used(void **state)
{
	struct mpf_writer *w = create(path);
	struct binaries b;

	(void)state;
	put(w, binary("/no-end", 1, LARGE), 0, 1000);
	put(w, binary("/no-beginning", 2, LARGE), 1000, LARGE);
	put(w, binary("/gap", 3, LARGE), 0, 1000);
	put(w, binary("/gap", 3, LARGE), 1001, LARGE);
	put(w, binary("/overlap", 4, LARGE), 0, MPF_BINARY_PIECE);
	put(w, binary("/overlap", 4, LARGE), MPF_BINARY_PIECE - 1, LARGE);
	put(w, binary("/good", 5, 500), 0, 500);
	put(w, binary("/again", 5, 500), 0, 500);
	put(w, binary("/sizes", 6, 500), 0, 400);
	put(w, binary("/sizes", 6, 600), 400, 600);
	assert_int_equal(mpf_close(w), 0);
	open_them(&b, path);
	assert_int_equal(b.list.n, 7);
	for (size_t i = 0; i < b.list.n; i++)
		assert_int_equal(b.list.at[i].wrong == NULL, i == 4);
	assert_string_equal(b.list.at[5].wrong, "is in the recording twice");
	check_whole(&b, 4, "/good", 500);
	binaries_close(&b);
}

/* Chunks whose bytes are beyond the end of the file, that have no bytes, or no path. */
static void odd_pieces(void **state)
{
	static const struct mp_binary odd[] = {
	    {.path = "/beyond", .size = 10, .offset = 5, .n = 6},
	    {.path = "/far", .size = 10, .offset = UINT64_MAX, .n = 6},
	    {.path = "/nothing", .size = 10},
	    {.path = NULL, .size = 10, .n = 10}};
	struct mpf_writer *w = create(path);
	struct binaries b;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct mp_binary piece = odd[i];

		piece.data = content;
		assert_int_equal(mpf_put_binary(w, &piece), 0);
	}
	assert_int_equal(mpf_close(w), 0);
	open_them(&b, path);
	assert_int_equal(b.list.n, 0);
	assert_int_equal(b.damaged, 4);
	binaries_close(&b);
}

static void flip(off_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static uint32_t marks(const char *of, bool *truncated)
{
	struct mpf_reader *r;
	struct mp_info info;
	struct mpf_item it;
	uint32_t n = 0;

	assert_int_equal(mpf_open(of, &r, &info, NULL), 0);
	while (mpf_next(r, &it, NULL) > 0)
		n += it.kind == MPF_MARK;
	*truncated = mpf_truncated(r) != NULL;
	mpf_reader_free(r);
	return n;
}

/* Damages one of three chunks: items and the other binaries can be read, this binary cannot. */
static void a_damaged_chunk_takes_only_its_own(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		struct mpf_writer *w = create(path);
		struct binaries b;
		bool truncated;
		uint64_t end[3];

		assert_int_equal(mpf_put_mark(w, 1, "x"), 0);
		for (uint8_t i = 0; i < 3; i++) {
			char name[] = {'/', (char)('a' + i), 0};

			put(w, binary(name, i + 1, 1000), 0, 1000);
			end[i] = mpf_bytes(w);
		}
		assert_int_equal(mpf_close(w), 0);
		flip((off_t)end[which] - 1);
		assert_int_equal(marks(path, &truncated), 1);
		assert_false(truncated);
		open_them(&b, path);
		assert_int_equal(b.list.n, 2);
		assert_int_equal(b.damaged, 1);
		check_whole(&b, 0, which ? "/a" : "/b", 1000);
		check_whole(&b, 1, which == 2 ? "/b" : "/c", 1000);
		binaries_close(&b);
	}
}

static int keep(void *ctx, struct mpf_writer *w, const struct mpf_item *it)
{
	(void)ctx;
	return mpf_put_item(w, it);
}

static void copies_have_each_once(void **state)
{
	struct mpf_change change = {.item = keep};
	struct mpf_writer *w = create(path);
	struct intern *have = intern_new();
	struct binaries b;
	bool truncated;

	(void)state;
	put(w, binary("/large", 7, LARGE), 0, LARGE);
	put(w, binary("/none", 0, 100), 0, 100);
	assert_int_equal(mpf_close(w), 0);
	assert_int_equal(mpf_copy(path, copy_path, &change, &truncated, NULL), 0);
	open_them(&b, copy_path);
	assert_int_equal(b.list.n, 0);
	binaries_close(&b);
	change.binaries = true;
	assert_int_equal(mpf_copy(path, copy_path, &change, &truncated, NULL), 0);
	assert_false(truncated);
	open_them(&b, copy_path);
	check_whole(&b, 0, "/large", LARGE);
	check_whole(&b, 1, "/none", 100);
	binaries_close(&b);
	w = create(copy_path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(binaries_copy(path, w, have, &truncated, NULL), 0);
		assert_false(truncated);
	}
	assert_int_equal(mpf_close(w), 0);
	open_them(&b, copy_path);
	assert_int_equal(b.list.n, 2);
	binaries_close(&b);
	intern_free(have);
}

static int setup(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < LARGE; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		content[i] = (uint8_t)(seed >> 40 & (i & 4096 ? 255 : 1));
	}
	close(mkstemp(path));
	close(mkstemp(copy_path));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(copy_path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whole_ones_are_read),
	    cmocka_unit_test(what_is_not_whole_is_not_used),
	    cmocka_unit_test(odd_pieces),
	    cmocka_unit_test(a_damaged_chunk_takes_only_its_own),
	    cmocka_unit_test(copies_have_each_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
