/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "server/query.h"

static void expect_pair(const struct query *q, size_t i, const char *name, const char *value)
{
	assert_true(i < q->pairs.n);
	assert_string_equal(q->pairs.at[i].name, name);
	assert_string_equal(q->pairs.at[i].value, value);
}

static void expect_refusal(const char *text, int code, const char *why)
{
	struct mp_err err = {0};
	struct query q;

	assert_int_equal(query_parse(text, &q, &err), code);
	assert_int_equal(err.exit, MP_EXIT_USAGE);
	if (!strstr(err.what, why))
		fail_msg("'%s' does not say '%s'", err.what, why);
}

static void pairs(void **state)
{
	struct mp_err err = {0};
	struct query q;

	(void)state;
	assert_int_equal(query_parse("a=1&&b=x%3D%26+y&c&=d&e=f=g&", &q, &err), 0);
	assert_int_equal(q.pairs.n, 5);
	expect_pair(&q, 0, "a", "1");
	expect_pair(&q, 1, "b", "x=& y");
	expect_pair(&q, 2, "c", "");
	expect_pair(&q, 3, "", "d");
	expect_pair(&q, 4, "e", "f=g");
	query_free(&q);
	assert_int_equal(query_parse("%61%2B+=%C3%a4", &q, &err), 0);
	expect_pair(&q, 0, "a+ ", "\xc3\xa4");
	query_free(&q);
	assert_int_equal(query_parse(NULL, &q, &err), 0);
	assert_int_equal(q.pairs.n, 0);
	query_free(&q);
	assert_int_equal(query_parse("", &q, &err), 0);
	assert_int_equal(q.pairs.n, 0);
	query_free(&q);
}

/* bytehound takes them as they are, and its README has a command with "50%&". */
static void lone_percent_signs(void **state)
{
	struct mp_err err = {0};
	struct query q;

	(void)state;
	assert_int_equal(query_parse("a=50%&b=%4&%zz=%4g%41&c=%%41", &q, &err), 0);
	assert_int_equal(q.pairs.n, 4);
	expect_pair(&q, 0, "a", "50%");
	expect_pair(&q, 1, "b", "%4");
	expect_pair(&q, 2, "%zz", "%4gA");
	expect_pair(&q, 3, "c", "%A");
	query_free(&q);
}

static void no_nul(void **state)
{
	(void)state;
	expect_refusal("size=%00", -EINVAL, "size: the value contains a NUL");
	expect_refusal("size=x%00y", -EINVAL, "size: the value contains a NUL");
	expect_refusal("%00=5", -EINVAL, "the name of a parameter contains a NUL");
}

/* As many and as long as the limits say, and one more. */
static void limits(void **state)
{
	static char text[QUERY_MOST_BYTES + 2];
	struct mp_err err = {0};
	struct query q;

	(void)state;
	for (uint32_t i = 0; i < QUERY_MOST_PAIRS; i++)
		memcpy(text + 2 * i, "a&", 3);
	assert_int_equal(query_parse(text, &q, &err), 0);
	assert_int_equal(q.pairs.n, QUERY_MOST_PAIRS);
	query_free(&q);
	memcpy(text + 2ull * QUERY_MOST_PAIRS, "a", 2);
	expect_refusal(text, -EINVAL, "more than 256 parameters");
	memset(text, 'a', QUERY_MOST_BYTES);
	text[QUERY_MOST_BYTES] = 0;
	assert_int_equal(query_parse(text, &q, &err), 0);
	query_free(&q);
	text[QUERY_MOST_BYTES] = 'a';
	expect_refusal(text, -ENAMETOOLONG, "more than 16384 bytes");
}

/* In a path '+' is itself. */
static void paths(void **state)
{
	char text[] = "/a+b%2f%25", bad[] = "/%0", zero[] = "/%00";

	(void)state;
	assert_int_equal(percent_decode(text, false), 0);
	assert_string_equal(text, "/a+b/%");
	assert_int_equal(percent_decode(bad, false), -EINVAL);
	assert_int_equal(percent_decode(zero, false), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pairs), cmocka_unit_test(lone_percent_signs), cmocka_unit_test(no_nul),
	    cmocka_unit_test(limits), cmocka_unit_test(paths)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
