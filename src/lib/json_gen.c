/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/json_gen.h"

#include <stdlib.h>
#include <string.h>
#include "lib/utf8.h"

static void print(void *ctx, const char *text, size_t n)
{
	fwrite_unlocked(text, 1, n, ctx); /* each stream has one writer */
}

void json_string(yajl_gen g, const char *s)
{
	char *copy = strdup(s);

	if (!copy) {
		yajl_gen_null(g);
		return;
	}
	utf8_clean(copy);
	yajl_gen_string(g, (const unsigned char *)copy, strlen(copy));
	free(copy);
}

void json_name(yajl_gen g, const char *s)
{
	yajl_gen_string(g, (const unsigned char *)s, strlen(s));
}

void json_number(yajl_gen g, const char *key, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	json_name(g, key);
	yajl_gen_number(g, digits, (size_t)n);
}

void json_integer(yajl_gen g, const char *key, int64_t v)
{
	json_name(g, key);
	yajl_gen_integer(g, v);
}

void json_known(yajl_gen g, const char *key, uint64_t v)
{
	if (v) {
		json_number(g, key, v);
		return;
	}
	json_name(g, key);
	yajl_gen_null(g);
}

void json_text(yajl_gen g, const char *key, const char *v)
{
	json_name(g, key);
	if (v)
		json_string(g, v);
	else
		yajl_gen_null(g);
}

void json_boolean(yajl_gen g, const char *key, bool v)
{
	json_name(g, key);
	yajl_gen_bool(g, v);
}

void json_amount(yajl_gen g, const char *key, uint64_t count, uint64_t bytes)
{
	json_name(g, key);
	yajl_gen_map_open(g);
	json_number(g, "count", count);
	json_number(g, "bytes", bytes);
	yajl_gen_map_close(g);
}

void json_hex(yajl_gen g, uint64_t v)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "%016llX", (unsigned long long)v);
	json_name(g, hex);
}

void json_address(yajl_gen g, uint64_t v)
{
	json_number(g, "address", v);
	json_name(g, "address_s");
	json_hex(g, v);
}

void json_timeval(yajl_gen g, const char *key, uint64_t ns)
{
	json_name(g, key);
	yajl_gen_map_open(g);
	json_number(g, "secs", ns / 1000000000u);
	json_number(g, "fract_nsecs", ns % 1000000000u);
	yajl_gen_map_close(g);
}

yajl_gen json_begin(FILE *out, bool beautify)
{
	yajl_gen g = yajl_gen_alloc(NULL);

	if (!g)
		return NULL;
	yajl_gen_config(g, yajl_gen_print_callback, print, out);
	yajl_gen_config(g, yajl_gen_beautify, beautify);
	yajl_gen_config(g, yajl_gen_indent_string, " ");
	return g;
}

void json_part(yajl_gen g, const char *key, uint32_t ppm)
{
	json_name(g, key);
	yajl_gen_double(g, ppm / 1e6);
}
