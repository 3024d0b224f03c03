/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requests to endpoints of this test's own, which have all kinds of parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/lists/view.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/recordings.h"
#include "server/status.h"

#define FIRST  "00112233445566778899aabbccddeeff"
#define SECOND "ffeeddccbbaa99887766554433221100"

static int nothing(struct answer *a, struct mp_err *err)
{
	(void)a, (void)err;
	return 0;
}

static const char *const keys[] = {"address", "size", NULL};
static const struct parameter own[] = {LIST_PARAMETERS(keys),
				       FRAME_PARAMETERS,
				       {"few", PARAMETER_NUMBER, 10, NULL},
				       {"at", PARAMETER_TIME, 0, NULL},
				       {"for", PARAMETER_DURATION, 0, NULL},
				       {"pattern", PARAMETER_REGEX, 0, NULL},
				       {"text", PARAMETER_TEXT, 0, NULL},
				       /* has the name of a filter */
				       {"size_min", PARAMETER_NUMBER, 0, NULL},
				       {0}};
const struct endpoint endpoints[] = {
    {"", TYPE_TEXT, READ_NONE, 0, NULL, nothing},
    {"list", TYPE_JSON, READ_NONE, 0, NULL, nothing},
    {"plain", TYPE_JSON, READ_MODEL, 0, NULL, nothing},
    {"filtered", TYPE_JSON, READ_MODEL, ENDPOINT_FILTERED, NULL, nothing},
    {"own", TYPE_JSON, READ_MODEL, ENDPOINT_FILTERED, own, nothing},
    {"backtrace/{number}", TYPE_JSON, READ_MODEL, 0, NULL, nothing},
    {"export/named", TYPE_JSON, READ_MODEL, ENDPOINT_FILTERED | ENDPOINT_NAMED, NULL, nothing},
    {0},
};

static struct recording files[] = {{.path = (char *)"/a", .id = FIRST},
				   {.path = (char *)"/b", .id = SECOND}};
static const struct recordings recordings = {{files, 2, 2}};

/* Return: the status; @c and @err are of the last call. */
static struct call c;
static struct mp_err err;

static unsigned int ask(const char *path, const char *query)
{
	memset(&err, 0, sizeof(err));
	return call_parse(&recordings, path, query, &c, &err);
}

static void accept(const char *path, const char *query)
{
	if (ask(path, query) != HTTP_OK)
		fail_msg("%s?%s: %s", path, query ? query : "", err.what);
}

static void refuse(const char *path, const char *query, unsigned int status, const char *says)
{
	unsigned int got = ask(path, query);

	if (got != status || !strstr(err.what, says))
		fail_msg("%s?%s: %u '%s' instead of %u '%s'", path, query ? query : "", got,
			 err.what, status, says);
}

static void expect_path(const char *path, const char *endpoint, uint32_t recording, uint64_t number)
{
	accept(path, NULL);
	assert_string_equal(c.endpoint->path, endpoint);
	assert_int_equal(c.recording, recording);
	assert_int_equal(c.number, number);
	call_free(&c);
}

static void paths(void **state)
{
	(void)state;
	expect_path("/", "", 0, 0);
	expect_path("", "", 0, 0);
	expect_path("/list", "list", 0, 0);
	expect_path("/l%69st", "list", 0, 0);
	expect_path("/data/" FIRST "/plain", "plain", 0, 0);
	expect_path("/data/" SECOND "/plain", "plain", 1, 0);
	expect_path("/data/last/plain", "plain", 1, 0);
	expect_path("/%64ata/last/plain", "plain", 1, 0);
	expect_path("/data/last/backtrace/0", "backtrace/{number}", 1, 0);
	expect_path("/data/last/backtrace/18446744073709551615", "backtrace/{number}", 1,
		    UINT64_MAX);
	expect_path("/data/last/export/named", "export/named", 1, 0);
	expect_path("/data/last/export/named/a%20file.svg", "export/named", 1, 0);
}

static void no_paths(void **state)
{
	static const char *const unknown[] = {"/x",
					      "/plain",
					      "/List",
					      "/list/",
					      "//list",
					      "/listx",
					      "/lis",
					      "/data",
					      "/data/last/list",
					      "/data/last/",
					      "/data/last",
					      "/data/last/plain/",
					      "/data/last/plain/x",
					      "/data/last/plai",
					      "/data/last/backtrace",
					      "/data/last/backtrace/",
					      "/data/last/backtrace/1/2",
					      "/data/last/export/named/",
					      "/data/last/export/named/a/b",
					      "/data/last/export",
					      "/data/last//plain"};
	static const char *const strange[] = {"/data//plain",	  "/data/x/plain",
					      "/data/LAST/plain", "/data/0011/plain",
					      "/data/../list",	  "/data/" FIRST "0/plain"};

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		refuse(unknown[i], NULL, HTTP_NOT_FOUND, "no such endpoint");
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		refuse(strange[i], NULL, HTTP_NOT_FOUND, "data not found");
	refuse("/%", NULL, HTTP_BAD_REQUEST, "path");
	refuse("/%00", NULL, HTTP_BAD_REQUEST, "path");
	refuse("/%ff", NULL, HTTP_BAD_REQUEST, "path");
	refuse("list", NULL, HTTP_BAD_REQUEST, "path");
	refuse("*", NULL, HTTP_BAD_REQUEST, "path");
	refuse("/data/last/backtrace/x", NULL, HTTP_BAD_REQUEST, "'x' is not a number");
	refuse("/data/last/backtrace/-1", NULL, HTTP_BAD_REQUEST, "'-1' is not a number");
	refuse("/data/last/backtrace/0x10", NULL, HTTP_BAD_REQUEST, "not a number");
	refuse("/data/last/backtrace/18446744073709551616", NULL, HTTP_BAD_REQUEST, "not a number");
}

/* Recordings come and go between the calls of a list without any. */
static void no_recordings(void **state)
{
	static const struct recordings none;

	(void)state;
	assert_int_equal(call_parse(&none, "/data/last/plain", NULL, &c, &err), HTTP_NOT_FOUND);
	assert_int_equal(call_parse(&none, "/list", NULL, &c, &err), HTTP_OK);
	call_free(&c);
}

static void scripts(void **state)
{
	(void)state;
	refuse("/data/last/execute_script", NULL, HTTP_NOT_IMPLEMENTED, "runs no scripts");
	refuse("/data/last/script_files/a", NULL, HTTP_NOT_IMPLEMENTED, "script_files");
	refuse("/data/last/map_filter_to_script", NULL, HTTP_NOT_IMPLEMENTED, "map_filter");
	refuse("/data/last/execute_scripts", NULL, HTTP_NOT_FOUND, "no such endpoint");
	refuse("/execute_script", NULL, HTTP_NOT_FOUND, "no such endpoint");
	refuse("/data/x/execute_script", NULL, HTTP_NOT_FOUND, "data not found");
}

static void values(void **state)
{
	struct view v;

	(void)state;
	accept("/data/last/own", "skip=7&count=4294967295&order=dsc&sort_by=size&"
				 "strip_template_args=true&few=10&at=50%25&for=1s&pattern=a%2Bb&"
				 "text=x%26y+z&size_min=3");
	call_view(&c, &v);
	assert_int_equal(v.skip, 7);
	assert_int_equal(v.count, UINT32_MAX);
	assert_true(v.descending);
	assert_int_equal(v.sort, 1);
	assert_true(call_true(&c, "strip_template_args"));
	assert_int_equal(call_number(&c, "few", 1), 10);
	assert_string_equal(call_text(&c, "at"), "50%");
	assert_string_equal(call_text(&c, "pattern"), "a+b");
	assert_string_equal(call_text(&c, "text"), "x&y z");
	/* The endpoint's own parameter, not the filter. */
	assert_int_equal(call_number(&c, "size_min", 0), 3);
	assert_true(filter_is_empty(&c.filter));
	call_free(&c);
	accept("/data/last/own", "strip_template_args=false&text=");
	call_view(&c, &v);
	assert_int_equal(v.skip, 0);
	assert_int_equal(v.count, VIEW_ALL);
	assert_false(v.descending || v.sort);
	assert_false(call_true(&c, "strip_template_args"));
	assert_int_equal(call_number(&c, "few", 5), 5);
	assert_string_equal(call_text(&c, "text"), "");
	assert_null(call_text(&c, "at"));
	assert_int_equal(call_word(&c, "sort_by"), 0);
	call_free(&c);
}

static void bad_values(void **state)
{
	static const struct {
		const char *query, *says;
	} bad[] = {{"skip=", "skip: '' is not a whole number"},
		   {"skip=-1", "skip: "},
		   {"skip=0x10", "skip: "},
		   {"skip=1e3", "skip: "},
		   {"skip=+1", "skip: "},
		   {"skip=18446744073709551616", "skip: "},
		   {"count=4294967296", "count: '4294967296' is not a whole number in the range"},
		   {"few=11", "few: "},
		   {"order=desc", "order: 'desc' is not one of the words"},
		   {"order=", "order: "},
		   {"sort_by=Size", "sort_by: "},
		   {"strip_template_args=1", "strip_template_args: '1' is not true or false"},
		   {"strip_template_args", "strip_template_args: "},
		   {"at=x", "at: 'x' is not a time"},
		   {"for=50%25", "for: '50%' is not a duration"},
		   {"pattern=(", "pattern: "},
		   {"text=a&text=a", "text: given twice"},
		   {"text=%ff", "not valid UTF-8"},
		   {"%ff=1", "not valid UTF-8"},
		   {"text=%00", "text: the value"},
		   {"unknown=1", "'unknown' is not a parameter of own"},
		   {"=1", "'' is not a parameter"},
		   {"Text=1", "'Text' is not a parameter"},
		   {"function_regex=(", "function_regex: "},
		   {"function_regex=a&function_regex=b", "function_regex"},
		   {"size_max=x", "size_max: "},
		   {"lifetime=never", "lifetime: "},
		   {"custom_filter=1", "custom_filter: memprof runs no scripts"},
		   {"deallocation_backtraces=1", "deallocation_backtraces: memprof does not"},
		   /* it would read a file of this machine */
		   {"suppress=/etc/passwd", "'suppress' is not a parameter"},
		   {"bytehound_group_leaked_allocations_min=1", "is not a parameter"}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse("/data/last/own", bad[i].query, HTTP_BAD_REQUEST, bad[i].says);
	refuse("/data/last/plain", "size_max=1", HTTP_BAD_REQUEST, "not a parameter of plain");
	refuse("/data/last/filtered", "skip=1", HTTP_BAD_REQUEST, "not a parameter of filtered");
	refuse("/", "x", HTTP_BAD_REQUEST, "'x' is not a parameter of /");
}

static void too_long(void **state)
{
	char *text = malloc(30001);

	(void)state;
	assert_non_null(text);
	memset(text, '&', 30000);
	text[30000] = 0;
	refuse("/list", text, HTTP_URI_TOO_LONG, "16384 bytes");
	free(text);
}

/* Names that mean in bytehound what memprof calls differently. */
static void meanings(void **state)
{
	static const struct {
		const char *value;
		enum lifetime ours;
	} kinds[] = {{"only_temporary", LIFETIME_BYTEHOUND_ONLY_TEMPORARY},
		     {"only_whole_group_leaked", LIFETIME_BYTEHOUND_ONLY_WHOLE_GROUP_LEAKED},
		     {"memprof_only_temporary", LIFETIME_ONLY_TEMPORARY},
		     {"memprof_only_whole_group_leaked", LIFETIME_ONLY_WHOLE_GROUP_LEAKED},
		     {"only_leaked", LIFETIME_ONLY_LEAKED},
		     {"all", LIFETIME_ALL}};
	char query[100];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(query, sizeof(query), "lifetime=%s", kinds[i].value);
		accept("/data/last/filtered", query);
		assert_int_equal(c.filter.lifetime, kinds[i].ours);
		call_free(&c);
	}
	accept("/data/last/filtered", "group_leaked_allocations_min=5&"
				      "memprof_group_leaked_allocations_min=7&alive_at=1s&"
				      "alive_at_2=2s&custom_filter=&deallocation_backtraces=");
	assert_int_equal(c.filter.group_unfreed_min.n, 5);
	assert_int_equal(c.filter.group_leaked_min.n, 7);
	assert_int_equal(c.filter.alive_at.n, 2);
	call_free(&c);
}

/* Return: the filter's text, to be freed. */
static char *filter_text(const char *query)
{
	char *text;

	accept("/data/last/own", query);
	text = strdup(c.filter_text);
	assert_non_null(text);
	call_free(&c);
	return text;
}

static void expect_same(const char *a, const char *b, bool same)
{
	char *x = filter_text(a), *y = filter_text(b);

	if (!strcmp(x, y) != same)
		fail_msg("'%s' is '%s', '%s' is '%s'", a, x, b, y);
	free(x);
	free(y);
}

/* Requests with the same text are answered from the same model: it has all of the filter. */
static void texts(void **state)
{
	(void)state;
	expect_same("size_max=5&thread=a", "thread=%61&&size_max=5", true);
	expect_same("size_max=5&skip=1&text=x", "size_max=5&count=2", true);
	expect_same("thread=a&thread=b", "thread=b&thread=a", true);
	expect_same("", "skip=1", true);
	expect_same("", "size_max=5", false);
	expect_same("size_max=5", "size_max=6", false);
	expect_same("first_size_max=5", "last_size_max=5", false);
	expect_same("thread=a&thread=b", "thread=a", false);
	expect_same("thread=a%26thread=b", "thread=a&thread=b", false);
	expect_same("thread=a%3D1:b", "thread=a", false);
	expect_same("thread=1:a&thread=b", "thread=1&thread=a%26thread%3Db", false);
	expect_same("thread=a%2526", "thread=a%26", false);
	expect_same("thread=a&marker=b", "thread=amarker=1:b", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(paths),	cmocka_unit_test(no_paths), cmocka_unit_test(no_recordings),
	    cmocka_unit_test(scripts),	cmocka_unit_test(values),   cmocka_unit_test(bad_values),
	    cmocka_unit_test(too_long), cmocka_unit_test(meanings), cmocka_unit_test(texts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
