/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which addresses code is recorded with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "control/code_history.h"

#define PLACE  0x7f0000001000ull
#define LENGTH 0x1000u
#define SECOND (1ull << 48)

static const struct code_look_times look = {100, 200};
static struct code_history h;
static struct tables tables;
static uint64_t ino;

static int begin(void **state)
{
	(void)state;
	h = (struct code_history){0};
	tables = (struct tables){0};
	ino = 1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	vec_free(&tables.code);
	code_history_free(&h);
	return 0;
}

/* @build: the file's build id; 0: it is no ELF file */
static struct code code_of(uint64_t start, uint64_t offset, const char *path, uint8_t build)
{
	struct code c = {
	    .m = {.start = start, .end = start + LENGTH, .file_offset = offset, .path = path},
	    .ino = ++ino};

	if (build) {
		c.m.bias = start - offset;
		c.m.build_id_len = 1;
		c.m.build_id[0] = build;
	}
	return c;
}

/* The process has only @c mapped now.  Return: the entry. */
static const struct code_entry *now(struct code c)
{
	tables.code.n = 0;
	assert_int_equal(vec_push(&tables.code, c), 0);
	assert_int_equal(code_history_update(&h, &tables, &look), 0);
	vec_for_each (&h.entries, e) {
		if (e->in_tables)
			return e;
	}
	fail();
	return NULL;
}

static size_t count_changes(void)
{
	struct code_change c;
	size_t n = 0;

	while (code_history_next_change(&h, &c))
		n++;
	return n;
}

static void test_numbers(void **state)
{
	const struct code_entry *e;

	(void)state;
	e = now(code_of(PLACE, 0, "/a", 1));
	assert_int_equal(e->m.start, PLACE);
	assert_int_equal(count_changes(), 0);
	e = now(code_of(PLACE, 0, "/b", 2));
	assert_int_equal(e->m.start, PLACE + SECOND);
	assert_int_equal(e->m.bias, PLACE + SECOND);
	assert_int_equal(e->m.end, PLACE + SECOND + LENGTH);
	e = now(code_of(PLACE, 0, "/c", 3));
	assert_int_equal(e->m.start, PLACE + 2 * SECOND);
	/* another file with the same build id is the same code */
	e = now(code_of(PLACE, 0, "/copy of b", 2));
	assert_int_equal(e->m.start, PLACE + SECOND);
	e = now(code_of(PLACE, 0, "/a", 1));
	assert_int_equal(e->m.start, PLACE);
	assert_int_equal(h.entries.n, 3);
	assert_int_equal(count_changes(), 4);
	/* elsewhere nothing was before */
	e = now(code_of(PLACE + LENGTH, 0, "/b", 2));
	assert_int_equal(e->m.start, PLACE + LENGTH);
	assert_int_equal(count_changes(), 0);
}

/* A library that changes the protection of a part of its code has several mappings. */
static void test_parts(void **state)
{
	const struct code_entry *e;
	struct code whole = code_of(PLACE, 0, "/b", 2),
		    part = code_of(PLACE + LENGTH, LENGTH, "/b", 2);

	(void)state;
	whole.m.end += LENGTH;
	now(code_of(PLACE, 0, "/a", 1));
	e = now(whole);
	assert_int_equal(e->add, SECOND);
	e = now(part);
	assert_int_equal(e->m.start, PLACE + LENGTH + SECOND);
	/* without /a, the parts do not compete with one another */
	e = now(code_of(PLACE, 0, "/a", 1));
	assert_int_equal(e->add, 0);
}

static void test_no_build_id(void **state)
{
	struct code a = code_of(PLACE, 0, "/plugin", 1), b = code_of(PLACE, 0, "/plugin", 1);

	(void)state;
	a.m.build_id_len = b.m.build_id_len = 0;
	assert_int_equal(now(a)->add, 0);
	assert_int_equal(now(b)->add, SECOND); /* another inode */
	assert_int_equal(now(a)->add, 0);
}

static void test_generated(void **state)
{
	struct mp_module m;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct code c =
		    code_of(PLACE + i * LENGTH, i * LENGTH, "/memfd:doublemapper (deleted)", 0);

		assert_int_equal(now(c)->add, 0);
		assert_true(code_history_next_module(&h, &m));
		c.m.file_offset += LENGTH; /* other code of the program at the same place */
		assert_int_equal(now(c)->add, 0);
		assert_false(code_history_next_module(&h, &m));
	}
	assert_true(h.entries.n <= 2);
	assert_int_equal(count_changes(), 0);
	/* code from files stays */
	now(code_of(PLACE, 0, "/a", 1));
	now(code_of(PLACE + LENGTH, 0, "/b", 1));
	assert_true(code_history_next_module(&h, &m));
	assert_string_equal(m.path, "/a");
	assert_true(code_history_next_module(&h, &m));
	assert_string_equal(m.path, "/b");
	assert_false(code_history_next_module(&h, &m));
	/* where a library was, generated code has addresses of its own */
	assert_int_equal(now(code_of(PLACE, 0, "", 0))->add, 0xffe * SECOND);
	assert_int_equal(count_changes(), 1);
	assert_int_equal(now(code_of(PLACE, 0, "/a", 1))->add, 0);
	assert_int_equal(now(code_of(PLACE, 0, "/c", 3))->add, SECOND);
	assert_int_equal(now(code_of(PLACE, 0, "", 0))->add, 0xffe * SECOND);
}

static void test_too_many(void **state)
{
	const struct code_entry *e = NULL;
	struct code c = code_of(PLACE, 0, "/plugin", 1);

	(void)state;
	c.m.build_id_len = 4;
	for (uint32_t i = 0; i < 4200; i++) {
		memcpy(c.m.build_id, &i, sizeof(i));
		e = now(c);
	}
	assert_string_equal(e->m.path, "[unknown code]");
	assert_int_equal(e->m.start, PLACE + 0xfff * SECOND);
	assert_int_equal(h.entries.n, 4095);
	memset(c.m.build_id, 0, 4);
	assert_string_equal(now(c)->m.path, "/plugin");
}

static void test_next_recorder(void **state)
{
	struct carry carry = {0};
	struct code a = code_of(PLACE, 0, "/a", 1), b = code_of(PLACE, 0, "/b", 2);
	struct mp_module m;

	(void)state;
	assert_int_equal(vec_push(&carry.modules, now(a)->m), 0);
	assert_int_equal(vec_push(&carry.modules, now(b)->m), 0);
	h.entries.n = h.next_module = 0;
	h.changes.n = 0;
	assert_int_equal(code_history_continue(&h, &carry), 0);
	assert_false(code_history_next_module(&h, &m));
	assert_int_equal(now(b)->add, SECOND);
	assert_int_equal(count_changes(), 1);
	assert_int_equal(now(code_of(PLACE, 0, "/c", 3))->add, 2 * SECOND);
	assert_int_equal(now(a)->add, 0);
	vec_free(&carry.modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_numbers, begin, end),
	    cmocka_unit_test_setup_teardown(test_parts, begin, end),
	    cmocka_unit_test_setup_teardown(test_no_build_id, begin, end),
	    cmocka_unit_test_setup_teardown(test_generated, begin, end),
	    cmocka_unit_test_setup_teardown(test_too_many, begin, end),
	    cmocka_unit_test_setup_teardown(test_next_recorder, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
