/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Base64: the test vectors of RFC 4648, section 10, all 64 digits, and texts of every length in parts of any size. */
#include "export/base64.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Return: the base64 of @n bytes, which are written in parts of @part; to be freed. */
static char *encode(const void *data, size_t n, size_t part)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size), *out;

	assert_non_null(to);
	out = base64_stream(to);
	assert_non_null(out);
	for (size_t i = 0; i < n; i += part) {
		size_t m = n - i < part ? n - i : part;

		assert_int_equal(fwrite((const char *)data + i, 1, m, out), m);
		assert_int_equal(fflush(out), 0);
	}
	assert_int_equal(fclose(out), 0);
	/* The stream below stays open. */
	assert_int_equal(putc('.', to), '.');
	assert_int_equal(fclose(to), 0);
	assert_int_equal(text[size - 1], '.');
	text[size - 1] = 0;
	return text;
}

static void vectors(void **state)
{
	static const char *const known[][2] = {{"", ""},
					       {"f", "Zg=="},
					       {"fo", "Zm8="},
					       {"foo", "Zm9v"},
					       {"foob", "Zm9vYg=="},
					       {"fooba", "Zm9vYmE="},
					       {"foobar", "Zm9vYmFy"}};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		for (size_t part = 1; part <= 6; part++) {
			char *got = encode(known[i][0], strlen(known[i][0]), part);

			assert_string_equal(got, known[i][1]);
			free(got);
		}
	}
}

/* Bytes whose digits are all 64, in order. */
static void digits(void **state)
{
	unsigned char data[48];
	char *got;

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		uint32_t d = 4 * i, bits = d << 18 | (d + 1) << 12 | (d + 2) << 6 | (d + 3);

		data[3 * i] = (unsigned char)(bits >> 16);
		data[3 * i + 1] = (unsigned char)(bits >> 8);
		data[3 * i + 2] = (unsigned char)bits;
	}
	got = encode(data, sizeof(data), sizeof(data));
	assert_string_equal(got,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	free(got);
}

/* More than the buffers of the streams: parts of any size give the same text. */
static void parts(void **state)
{
	enum { MOST = 30001 };
	unsigned char *data = malloc(MOST);

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < MOST; i++)
		data[i] = (unsigned char)(i * 167 + (i >> 8));
	for (size_t n = MOST - 3; n <= MOST; n++) {
		char *whole = encode(data, n, n);

		assert_int_equal(strlen(whole), (n + 2) / 3 * 4);
		for (size_t part = 100; part < 5000; part += 1117) {
			char *got = encode(data, n, part);

			assert_string_equal(got, whole);
			free(got);
		}
		free(whole);
	}
	free(data);
}

/* A stream that cannot be written to is an error at the latest when it is closed. */
static void full(void **state)
{
	FILE *to = fopen("/dev/full", "w"), *out;

	(void)state;
	assert_non_null(to);
	setvbuf(to, NULL, _IONBF, 0);
	out = base64_stream(to);
	assert_non_null(out);
	fputs("foobar", out);
	assert_int_not_equal(fclose(out), 0);
	fclose(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(digits),
					   cmocka_unit_test(parts), cmocka_unit_test(full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
