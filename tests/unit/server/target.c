/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "server/target.h"

static void expect(const char *uri, const char *host, const char *path, const char *query)
{
	struct target t;

	assert_int_equal(target_split(uri, &t), 0);
	if (host)
		assert_string_equal(t.host, host);
	else
		assert_null(t.host);
	assert_string_equal(t.path, path);
	assert_string_equal(t.query, query);
	target_free(&t);
}

static void targets(void **state)
{
	(void)state;
	expect("/", NULL, "/", "");
	expect("/a%20b?c=%3f?d", NULL, "/a%20b", "c=%3f?d");
	expect("/?", NULL, "/", "");
	expect("?x", NULL, "", "x");
	expect("", NULL, "", "");
	expect("*", NULL, "*", "");
	expect("//evil/x", NULL, "//evil/x", "");
	expect("/http://a/b", NULL, "/http://a/b", "");
}

static void with_host(void **state)
{
	(void)state;
	expect("http://localhost:8080/list?a=1", "localhost:8080", "/list", "a=1");
	expect("HTTP://[::1]/", "[::1]", "/", "");
	expect("http://a", "a", "", "");
	expect("http://a?b", "a", "", "b");
	expect("http://", "", "", "");
	expect("http:///x", "", "/x", "");
	expect("http:/", NULL, "http:/", "");
	expect("https://a/", NULL, "https://a/", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(targets), cmocka_unit_test(with_host)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
