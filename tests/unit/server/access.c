/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "server/access.h"
#include "server/status.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *const hosts[] = {"box.example", NULL}, *const origins[] = {"https://ui.example",
									      NULL};
static const struct access_rules open_rules = {NULL, hosts, origins},
				 closed_rules = {TOKEN, hosts, origins};

static void expect(const struct access_rules *rules, const struct access_request *r,
		   unsigned int status, const char *says)
{
	const char *why = "";
	unsigned int got = access_check(rules, r, &why);

	if (got != status || !strstr(why, says))
		fail_msg("Host %s, Origin %s: %u '%s' instead of %u '%s'", r->host, r->origin, got,
			 why, status, says);
}

static void host(const char *name, bool ours)
{
	struct access_request r = {.host = name};

	expect(&open_rules, &r, ours ? HTTP_OK : HTTP_MISDIRECTED, ours ? "" : "--host");
}

/* Addresses, localhost and the names that the rules have; with any port. */
static void names(void **state)
{
	static const char *const ours[] = {"localhost",	  "LOCALHOST:1",    "127.0.0.1:65535",
					   "10.1.2.3",	  "[::1]:8080",	    "[fe80::12]",
					   "box.example", "Box.Example:80", "[::ffff:1.2.3.4]"};
	static const char *const others[] = {"",
					     ":80",
					     "evil.example",
					     "localhost.evil.example",
					     "box.example.evil.example",
					     "xbox.example",
					     "127.0.0.1.evil.example",
					     "127.0.0.1:80.evil.example",
					     "127.0.0.1:8x",
					     "127.0.0.1:",
					     "localhost:80:80",
					     "[::1",
					     "[::1]x",
					     "[]",
					     "[evil.example]:80",
					     "user@localhost",
					     "localhost/",
					     "2130706433",
					     "0x7f.0.0.1",
					     " localhost"};
	char longest[600];

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		host(ours[i], true);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		host(others[i], false);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	host(longest, false);
	longest[255] = 0;
	host(longest, false);
	expect(&open_rules, &(struct access_request){0}, HTTP_BAD_REQUEST, "no Host");
}

static void origin(const char *of, const char *at, unsigned int status)
{
	struct access_request r = {.host = at, .origin = of};

	expect(&open_rules, &r, status, status == HTTP_OK ? "" : "--origin");
}

static void pages(void **state)
{
	(void)state;
	origin("http://localhost:8080", "localhost:8080", HTTP_OK);
	origin("https://localhost:8080", "LOCALHOST:8080", HTTP_OK);
	origin("http://[::1]:8080", "[::1]:8080", HTTP_OK);
	origin("https://ui.example", "localhost:8080", HTTP_OK);
	origin("null", "localhost:8080", HTTP_FORBIDDEN);
	origin("", "localhost:8080", HTTP_FORBIDDEN);
	origin("localhost:8080", "localhost:8080", HTTP_FORBIDDEN);
	origin("ftp://localhost:8080", "localhost:8080", HTTP_FORBIDDEN);
	origin("http://localhost:8081", "localhost:8080", HTTP_FORBIDDEN);
	origin("http://127.0.0.1:8080", "localhost:8080", HTTP_FORBIDDEN);
	origin("http://localhost:80801", "localhost:8080", HTTP_FORBIDDEN);
	origin("http://ui.example", "localhost:8080", HTTP_FORBIDDEN);
	origin("https://ui.example.evil.example", "localhost:8080", HTTP_FORBIDDEN);
	assert_true(access_is_named(&open_rules, "https://ui.example"));
	assert_false(access_is_named(&open_rules, "http://localhost:8080"));
	assert_false(access_is_named(&(struct access_rules){0}, "https://ui.example"));
}

/* What browsers say of requests without Origin, such as those for pictures and scripts. */
static void sites(void **state)
{
	static const struct {
		const char *site, *mode;
		unsigned int status;
	} cases[] = {{"none", "navigate", HTTP_OK},
		     {"same-origin", "no-cors", HTTP_OK},
		     {"cross-site", "navigate", HTTP_OK},
		     {"same-site", "navigate", HTTP_OK},
		     {"cross-site", "no-cors", HTTP_FORBIDDEN},
		     {"same-site", "no-cors", HTTP_FORBIDDEN},
		     {"cross-site", NULL, HTTP_FORBIDDEN},
		     {NULL, "no-cors", HTTP_OK}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct access_request r = {
		    .host = "localhost", .site = cases[i].site, .mode = cases[i].mode};

		expect(&open_rules, &r, cases[i].status, "");
	}
}

static void tokens(void **state)
{
	static const char *const wrong[] = {"",
					    "0123456789abcdef0123456789abcdee",
					    "1123456789abcdef0123456789abcdef",
					    "0123456789ABCDEF0123456789ABCDEF",
					    "0123456789abcdef0123456789abcde",
					    TOKEN "0",
					    " " TOKEN,
					    TOKEN TOKEN};
	struct access_request r = {.host = "localhost"};
	char header[128];

	(void)state;
	expect(&closed_rules, &r, HTTP_UNAUTHORIZED, "Authorization: Bearer");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(access_is_token(&closed_rules, wrong[i]));
		snprintf(header, sizeof(header), "Bearer %s", wrong[i]);
		r.authorization = header;
		r.cookie = wrong[i];
		expect(&closed_rules, &r, HTTP_UNAUTHORIZED, "token");
	}
	r.cookie = NULL;
	r.authorization = "Basic " TOKEN;
	expect(&closed_rules, &r, HTTP_UNAUTHORIZED, "token");
	r.authorization = TOKEN;
	expect(&closed_rules, &r, HTTP_UNAUTHORIZED, "token");
	r.authorization = "bearer " TOKEN;
	expect(&closed_rules, &r, HTTP_OK, "");
	r.authorization = NULL;
	r.cookie = TOKEN;
	expect(&closed_rules, &r, HTTP_OK, "");
	/* A page of another site makes the browser send the cookie. */
	r.origin = "https://evil.example";
	expect(&closed_rules, &r, HTTP_FORBIDDEN, "");
	/* Without a token in the rules nothing is one. */
	assert_false(access_is_token(&open_rules, TOKEN));
	assert_false(access_is_token(&open_rules, ""));
}

static void making(void **state)
{
	char a[ACCESS_TOKEN_LENGTH + 1], b[ACCESS_TOKEN_LENGTH + 1];

	(void)state;
	assert_int_equal(access_make_token(a), 0);
	assert_int_equal(access_make_token(b), 0);
	assert_int_equal(strspn(a, "0123456789abcdef"), ACCESS_TOKEN_LENGTH);
	assert_int_equal(strlen(a), ACCESS_TOKEN_LENGTH);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(pages),
					   cmocka_unit_test(sites), cmocka_unit_test(tokens),
					   cmocka_unit_test(making)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
