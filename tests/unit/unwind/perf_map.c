/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Perf maps, names of generated code, and what is known of an address that had several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "unwind/symbols/jit_name.h"
#include "unwind/symbols/perf_map.h"

static const uint64_t wanted[] = {0x1000, 0x10ff, 0x2000, 0x3000, 0x1000};

static int file_of(const char *text, size_t n)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	return fd;
}

/* @before: this much of the text is from before the recording. */
static struct jit_names *read_map(const char *text, size_t before, struct jit_read *r)
{
	struct jit_names *j = jit_names_new(wanted, sizeof(wanted) / sizeof(wanted[0]));
	int fd = file_of(text, strlen(text));

	assert_non_null(j);
	assert_int_equal(perf_map_read(fd, before, j, r), 0);
	close(fd);
	return j;
}

static void expect(struct jit_names *j, uint64_t address, const char *function)
{
	struct mp_symbol s;
	uint32_t n = jit_names_find(j, address, &s);

	assert_int_equal(n, function != NULL);
	if (n)
		assert_string_equal(s.function, function);
}

/* The name that @text has as the only line of a map. */
static void expect_one(const char *text, const char *function)
{
	struct jit_read r;
	struct jit_names *j = read_map(text, 0, &r);

	assert_int_equal(r.codes, function != NULL);
	assert_int_equal(r.invalid, function == NULL);
	expect(j, 0x1000, function);
	jit_names_free(j);
}

static void test_lines(void **state)
{
	(void)state;
	expect_one("1000 100 name\n", "name");
	expect_one("0x1000 0X100 name\n", "name");
	expect_one("0000000000001000 1 void A::b(int, char) [x]\n", "void A::b(int, char) [x]");
	expect_one("1000 1  two blanks\n", " two blanks");
	expect_one("1000 1 \xff\x1b[2J\n", "\xff\x1b[2J");
	expect_one("1000 100\n", NULL);
	expect_one("1000 100 \n", NULL);
	expect_one("1000 0 name\n", NULL);
	expect_one("1000  100 name\n", NULL);
	expect_one("1000\t100 name\n", NULL);
	expect_one("name\n", NULL);
	expect_one("\n", NULL);
	expect_one("00000000000001000 100 name\n", NULL);
	expect_one("1000 fffffffffffff800 name\n", NULL);
}

static void test_ranges(void **state)
{
	struct jit_read r;
	struct jit_names *j = read_map("1000 ff a\n2000 1 b\nxx\n2fff 1 c\n3000 1 not wr", 0, &r);

	(void)state;
	assert_int_equal(r.codes, 3);
	assert_int_equal(r.invalid, 1);
	assert_false(r.partial);
	expect(j, 0x1000, "a");
	expect(j, 0x10ff, NULL);
	expect(j, 0x2000, "b");
	expect(j, 0x3000, NULL);
	expect(j, 0x4000, NULL);
	assert_true(jit_names_wants(j, 0x10f0, 0x10));
	assert_false(jit_names_wants(j, 0x10f0, 0xf));
	assert_false(jit_names_wants(j, 0x3001, UINT64_MAX));
	jit_names_free(j);
}

/* Names of before the recording are replaced; all of its own are told. */
static void test_reuse(void **state)
{
	static const char text[] =
	    "1000 200 a\n1000 100 b\n2000 1 c\n2000 1 d\n1000 1 c\n1000 1 b\n";
	struct jit_read r;
	struct jit_names *j = read_map(text, 0, &r);

	(void)state;
	expect(j, 0x1000, "c | b | a");
	expect(j, 0x10ff, "b | a");
	expect(j, 0x2000, "d | c");
	jit_names_free(j);
	j = read_map(text, 22, &r); /* a and b */
	expect(j, 0x1000, "c | b");
	expect(j, 0x10ff, "b");
	expect(j, 0x2000, "d | c");
	jit_names_free(j);
	j = read_map(text, strlen(text), &r);
	expect(j, 0x1000, "b");
	expect(j, 0x2000, "d");
	jit_names_free(j);
	j = read_map("1000 1 a\n1000 1 b\n1000 1 c\n1000 1 d\n1000 1 e\n", 0, &r);
	expect(j, 0x1000, "d | c | b | a | ...");
	jit_names_free(j);
	/* Another tier of a function is the same function. */
	j = read_map("1000 1 JS:~f /a.js:1:2\n1000 1 JS:*f /a.js:1:2\n", 0, &r);
	expect(j, 0x1000, "f");
	jit_names_free(j);
}

static void test_long_lines(void **state)
{
	size_t n = 200000;
	char *text = malloc(n + 100);
	struct jit_names *j;
	struct mp_symbol s;
	struct jit_read r;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	memcpy(text, "1000 1 ", 7);
	strcpy(text + n, "\n2000 1 b\n");
	j = read_map(text, 0, &r);
	assert_int_equal(r.invalid, 1);
	assert_int_equal(r.codes, 1);
	expect(j, 0x1000, NULL);
	expect(j, 0x2000, "b");
	jit_names_free(j);
	strcpy(text + 5000, "\n2000 1 b\n");
	j = read_map(text, 0, &r);
	assert_int_equal(jit_names_find(j, 0x1000, &s), 1);
	assert_int_equal(strlen(s.function), JIT_MAX_NAME);
	assert_string_equal(s.function + JIT_MAX_NAME - 4, "x...");
	expect(j, 0x2000, "b");
	jit_names_free(j);
	/* Lines across the ends of what is read at once. */
	for (size_t i = 0; i < n; i += 10)
		memcpy(text + i, "2000 1 aa\n", 10);
	text[n] = 0;
	j = read_map(text, 0, &r);
	assert_int_equal(r.codes, n / 10);
	assert_int_equal(r.invalid, 0);
	expect(j, 0x2000, "aa");
	jit_names_free(j);
	free(text);
}

/* Bytes that are no text, and a file that ends before its size. */
static void test_zeros(void **state)
{
	static const char text[] = "1000 1 a\0b\n2000 1 b\n";
	struct jit_names *j = jit_names_new(wanted, 5);
	int fd = file_of(text, sizeof(text) - 1);
	struct jit_read r;

	(void)state;
	assert_int_equal(perf_map_read(fd, 0, j, &r), 0);
	assert_int_equal(r.invalid, 1);
	expect(j, 0x1000, NULL);
	expect(j, 0x2000, "b");
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(perf_map_read(fd, 0, j, &r), 0);
	assert_int_equal(r.invalid, 2);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(perf_map_read(fd, 0, j, &r), 0);
	assert_true(r.partial);
	expect(j, 0x2000, "b | ...");
	close(fd);
	jit_names_free(j);
}

static void check_name(const char *name, const char *function, const char *source, uint32_t line,
		       uint32_t column)
{
	char buf[256];
	struct mp_symbol s;

	jit_name_split(name, buf, &s);
	assert_string_equal(s.raw_function, name);
	assert_string_equal(s.function, function);
	if (source)
		assert_string_equal(s.source, source);
	else
		assert_null(s.source);
	assert_int_equal(s.line, line);
	assert_int_equal(s.column, column);
}

static void test_names(void **state)
{
	(void)state;
	check_name("LazyCompile:*handle /app/server.js:33:20", "handle", "/app/server.js", 33, 20);
	check_name("JS:~get size /my app/a.js:3:4", "get size", "/my app/a.js", 3, 4);
	check_name("JS:^handle file:///app/a.mjs:1:2", "handle", "/app/a.mjs", 1, 2);
	check_name("JS:+f file:///a%20b.mjs:1:2", "f", "file:///a%20b.mjs", 1, 2);
	check_name("JS:~ node:internal/timers:504:25", "(anonymous)", "node:internal/timers", 504,
		   25);
	check_name("Eval:~ [eval]:1:1", "(anonymous)", "[eval]", 1, 1);
	check_name("Script:~ evalmachine.<anonymous>:1:1", "(anonymous)", "evalmachine.<anonymous>",
		   1, 1);
	check_name("Function:f /a.js:12", "f", "/a.js", 12, 0);
	check_name("JS:*f", "f", NULL, 0, 0);
	check_name("JS:*f /a.js", "f", "/a.js", 0, 0);
	check_name("JS:*f /a.js:99999999999:1", "f", "/a.js:99999999999", 1, 0);
	check_name("JS:*f :1:2", "f", NULL, 0, 0);
	check_name("JS:* :1:2", "(anonymous)", NULL, 0, 0);
	check_name("JS:*", "(anonymous)", NULL, 0, 0);
	check_name("JS:", "(anonymous)", NULL, 0, 0);
	check_name("JS::1:2", "(anonymous)", NULL, 0, 0);
	check_name("Builtin:ArgumentsAdaptorTrampoline", "Builtin:ArgumentsAdaptorTrampoline", NULL,
		   0, 0);
	check_name("py::C.m:/app/a.py", "C.m", "/app/a.py", 0, 0);
	check_name("py::<lambda>:<string>", "<lambda>", "<string>", 0, 0);
	check_name("py::f", "py::f", NULL, 0, 0);
	check_name("py:::", "py:::", NULL, 0, 0);
	check_name("Ljava/lang/String;::hashCode", "Ljava/lang/String;::hashCode", NULL, 0, 0);
	check_name("int32 [App] App.P::Main(string[])[Tier0]",
		   "int32 [App] App.P::Main(string[])[Tier0]", NULL, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines), cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_reuse), cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_zeros), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
