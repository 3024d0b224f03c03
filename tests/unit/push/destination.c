/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "push/destination.h"

static void urls(void **state)
{
	static const struct {
		const char *text;
		enum destination_kind kind;
		const char *url;
	} good[] = {
	    {"otlp+http://h:4318", DESTINATION_OTLP, "http://h:4318/v1development/profiles"},
	    {"otlp+https://h/", DESTINATION_OTLP, "https://h/v1development/profiles"},
	    {"otlp+http://h/own/path", DESTINATION_OTLP, "http://h/own/path"},
	    {"pyroscope+http://[::1]:4040", DESTINATION_PYROSCOPE,
	     "http://[::1]:4040/push.v1.PusherService/Push"},
	    {"pyroscope+http://h/p/", DESTINATION_PYROSCOPE,
	     "http://h/p/push.v1.PusherService/Push"},
	    {"pyroscope+https://h/p/ingest", DESTINATION_INGEST, "https://h/p/ingest"},
	    {"parca+http://h:7070", DESTINATION_PARCA, "http://h:7070/profiles/writeraw"},
	    {"file:///var/profiles", DESTINATION_DIRECTORY, "/var/profiles"},
	    {"profiles", DESTINATION_DIRECTORY, "profiles"},
	};
	static const char *const bad[] = {
	    "",
	    "file://",
	    "http://h",
	    "otlp+http://",
	    "otlp+http:///p",
	    "otlp+ftp://h",
	    "parca+h:1",
	    "otlp+http://h?x=y",
	    "otlp+http://h/#f",
	    "tcp://h",
	    "otlp+http://user:password@h/",
	};
	struct destination d;
	struct mp_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_return_code(destination_parse(good[i].text, &d, &err), 0);
		assert_int_equal(d.kind, good[i].kind);
		assert_string_equal(d.url, good[i].url);
		destination_free(&d);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(destination_parse(bad[i], &d, &err), -EINVAL);
		assert_null(strstr(err.what, "password@"));
		destination_free(&d);
	}
}

static void headers(void **state)
{
	struct destination d = {0};

	(void)state;
	assert_return_code(destination_add_header(&d, "Authorization: Bearer a:b"), 0);
	assert_return_code(destination_add_header(&d, "X-Scope-OrgID:\tshop"), 0);
	assert_int_equal(destination_add_header(&d, "no colon"), -EINVAL);
	assert_int_equal(destination_add_header(&d, ": nothing"), -EINVAL);
	assert_int_equal(destination_add_header(&d, "A b: c"), -EINVAL);
	assert_int_equal(destination_add_header(&d, "A: b\r\nC: d"), -EINVAL);
	assert_string_equal(d.header.at[0], "Authorization: Bearer a:b");
	assert_string_equal(d.header.at[1], "X-Scope-OrgID:\tshop");
	assert_null(d.header.at[2]);
	destination_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(urls), cmocka_unit_test(headers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
