/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Jitdump files: records, lines, code that is moved, and files that are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "unwind/symbols/jitdump.h"

enum kind { LOAD, MOVE, DEBUG_INFO, CLOSE };

static const uint64_t wanted[] = {0x1000, 0x1010, 0x1080, 0x2000, 0x2010, 0x3000};

static struct {
	char at[4096];
	size_t n;
} file;

static void add(const void *bytes, size_t n)
{
	assert_true(file.n + n <= sizeof(file.at));
	memcpy(file.at + file.n, bytes, n);
	file.n += n;
}

static void add64(uint64_t value)
{
	add(&value, sizeof(value));
}

static void add_header(void)
{
	const uint32_t header[] = {0x4a695444, 1, 40, 62, 0, 7, 1, 0, 0, 0};

	file.n = 0;
	add(header, sizeof(header));
}

/* @n: bytes of what follows the head. */
static void add_head(uint32_t kind, size_t n)
{
	const uint32_t head[] = {kind, (uint32_t)(16 + n), 1, 0};

	add(head, sizeof(head));
}

static void add_load(uint64_t address, uint64_t size, uint64_t index, const char *name)
{
	add_head(LOAD, 40 + strlen(name) + 1 + 3);
	add64(7ull << 32 | 7);
	add64(address);
	add64(address);
	add64(size);
	add64(index);
	add(name, strlen(name) + 1);
	add("\xc3\xc3\xc3", 3); /* the code */
}

static void add_move(uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	add_head(MOVE, 48);
	add64(7ull << 32 | 7);
	add64(to);
	add64(from);
	add64(to);
	add64(size);
	add64(index);
}

static void add_line(uint64_t address, uint32_t line, const char *source)
{
	const uint32_t place[] = {line, 5};

	add64(address);
	add(place, sizeof(place));
	add(source, strlen(source) + 1);
}

/* Two lines of the code at @address, from @shift and from @shift + 0x10 on. */
static void add_lines(uint64_t address, uint64_t shift, const char *source, const char *next)
{
	add_head(DEBUG_INFO, 16 + 32 + strlen(source) + strlen(next) + 2);
	add64(address);
	add64(2);
	add_line(address + shift, 10, source);
	add_line(address + shift + 0x10, 20, next);
}

static struct jit_names *read_dump(size_t before, int error, struct jit_read *r)
{
	struct jit_names *j = jit_names_new(wanted, sizeof(wanted) / sizeof(wanted[0]));
	int fd = memfd_create("dump", MFD_CLOEXEC);

	assert_non_null(j);
	assert_int_equal(write(fd, file.at, file.n), file.n);
	assert_int_equal(jitdump_read(fd, before, j, r), error);
	close(fd);
	return j;
}

static void expect(struct jit_names *j, uint64_t address, const char *function, const char *source,
		   uint32_t line)
{
	struct mp_symbol s = {0};

	assert_int_equal(jit_names_find(j, address, &s), function != NULL);
	if (!function)
		return;
	assert_string_equal(s.function, function);
	assert_int_equal(s.line, line);
	if (source)
		assert_string_equal(s.source, source);
	else
		assert_null(s.source);
}

static void test_records(void **state)
{
	struct jit_names *j;
	struct jit_read r;
	size_t before;

	(void)state;
	add_header();
	add_load(0x1000, 0x80, 0, "int A::b(int)");
	add_head(4, 8); /* JIT_CODE_UNWINDING_INFO */
	add64(0);
	before = file.n;
	add_load(0x1000, 0x20, 1, "JS:~f /a.js:1:2");
	add_load(0x2000, 0x20, 2, "JS:*g /a.js:3:4");
	add_head(CLOSE, 0);
	add_load(0x3000, 0x20, 3, "never");
	j = read_dump(0, 0, &r);
	assert_int_equal(r.codes, 3);
	assert_int_equal(r.invalid, 0);
	expect(j, 0x1000, "f | int A::b(int)", NULL, 0);
	expect(j, 0x1010, "f | int A::b(int)", NULL, 0);
	expect(j, 0x1080, NULL, NULL, 0);
	expect(j, 0x2010, "g", "/a.js", 3);
	expect(j, 0x3000, NULL, NULL, 0);
	jit_names_free(j);
	/* What is announced later adds a name, also if the code of before is still there. */
	j = read_dump(before, 0, &r);
	expect(j, 0x1000, "f | int A::b(int)", NULL, 0);
	jit_names_free(j);
	j = read_dump(file.n, 0, &r);
	expect(j, 0x1000, "f", "/a.js", 1);
	jit_names_free(j);
}

static void test_lines(void **state)
{
	struct jit_names *j;
	struct jit_read r;

	(void)state;
	add_header();
	add_lines(0x1000, 0, "/a.cc", "\xff");
	add_load(0x1000, 0x81, 0, "a");
	add_load(0x2000, 0x20, 1, "b"); /* no lines */
	j = read_dump(0, 0, &r);
	expect(j, 0x1000, "a", "/a.cc", 10);
	expect(j, 0x1010, "a", "/a.cc", 20);
	expect(j, 0x1080, "a", "/a.cc", 20);
	expect(j, 0x2000, "b", NULL, 0);
	jit_names_free(j);

	/* V8: 64 is added to addresses; the lines of other functions are not this one's. */
	add_header();
	add_lines(0x1000, 64, "/a.js", "/other.js");
	add_load(0x1000, 0x81, 0, "JS:*a /a.js:3:4");
	j = read_dump(0, 0, &r);
	expect(j, 0x1000, "a", "/a.js", 10);
	expect(j, 0x1010, "a", "/a.js", 3);
	jit_names_free(j);

	/* The next line's record is where the source should end. */
	add_header();
	add_lines(0x1000, 0, "/a.cc", "/b.cc");
	file.at[file.n - 23] = 'x';
	add_load(0x1000, 0x81, 0, "a");
	j = read_dump(0, 0, &r);
	expect(j, 0x1000, "a", NULL, 0);
	jit_names_free(j);
}

static void test_moves(void **state)
{
	struct jit_names *j;
	struct jit_read r;
	size_t before;

	(void)state;
	add_header();
	add_lines(0x5000, 0, "/a.cc", "\xff");
	add_load(0x5000, 0x20, 3, "a");
	add_load(0x6000, 0x20, 5, "b");
	before = file.n;
	add_move(0x5000, 0x2000, 0x20, 3);
	add_move(0x6000, 0x1000, 0x10, 5);
	add_move(0x6000, 0x1000, 0x10, 4); /* unknown */
	j = read_dump(0, 0, &r);
	assert_int_equal(r.codes, 2);
	assert_int_equal(r.invalid, 1);
	expect(j, 0x2000, "a", "/a.cc", 10);
	expect(j, 0x2010, "a", "/a.cc", 20);
	expect(j, 0x1000, "b", NULL, 0);
	expect(j, 0x1010, NULL, NULL, 0);
	jit_names_free(j);
	add_move(0x5000, 0x1000, 0x10, 3);
	j = read_dump(before, 0, &r);
	expect(j, 0x1000, "a | b", NULL, 0);
	jit_names_free(j);
}

static void test_damaged(void **state)
{
	struct jit_names *j;
	struct jit_read r;
	size_t whole;

	(void)state;
	add_header();
	add_lines(0x1000, 0, "/a.cc", "/b.cc");
	add_load(0x1000, 0x20, 0, "a");
	add_move(0x1000, 0x2000, 0x20, 0);
	whole = file.n;
	for (file.n = 0; file.n < whole; file.n++) {
		j = read_dump(0, file.n < 40 ? -EPROTO : 0, &r);
		expect(j, 0x2000, NULL, NULL, 0);
		jit_names_free(j);
	}
	add_header();
	add_head(LOAD, 8); /* too short */
	add64(0);
	add_load(0x1000, UINT64_MAX, 0, "a"); /* not in the address space */
	add_load(0x1000, 0x20, 0, "");
	add_load(0x2000, 0x20, 1, "b");
	add_head(LOAD, (size_t)-15); /* no size */
	add_load(0x3000, 0x20, 2, "c");
	j = read_dump(0, 0, &r);
	assert_int_equal(r.invalid, 4);
	expect(j, 0x1000, NULL, NULL, 0);
	expect(j, 0x2000, "b", NULL, 0);
	expect(j, 0x3000, NULL, NULL, 0);
	jit_names_free(j);
	file.at[0]++;
	jit_names_free(read_dump(0, -EPROTO, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_moves),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
