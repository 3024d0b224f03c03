/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/query.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Return: the value of a hexadecimal digit, or -1. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int percent_decode(char *text, bool in_query)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		if (*p == '%') {
			int high = digit(p[1]), low = high < 0 ? -1 : digit(p[2]);

			if (low < 0 ? !in_query : !high && !low)
				return -EINVAL;
			*to++ = low < 0 ? '%' : (char)(high << 4 | low);
			p += low < 0 ? 0 : 2;
		} else {
			*to++ = *p == '+' && in_query ? ' ' : *p;
		}
	}
	*to = 0;
	return 0;
}

static int add_pair(struct query *q, char *text, struct mp_err *err)
{
	char *value = strchr(text, '=');
	struct query_pair pair = {text, ""};

	if (value) {
		*value++ = 0;
		pair.value = value;
	}
	if (percent_decode(text, true))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "the name of a parameter contains a NUL");
	if (value && percent_decode(value, true))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%.100s: the value contains a NUL",
			       text);
	if (q->pairs.n == QUERY_MOST_PAIRS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "more than %u parameters",
			       QUERY_MOST_PAIRS);
	return vec_push(&q->pairs, pair) ? mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory")
					 : 0;
}

int query_parse(const char *text, struct query *q, struct mp_err *err)
{
	char *at, *part;
	int ret = 0;

	memset(q, 0, sizeof(*q));
	text = text ? text : "";
	if (strlen(text) > QUERY_MOST_BYTES)
		return mp_fail(err, MP_EXIT_USAGE, -ENAMETOOLONG,
			       "the query has more than %u bytes", QUERY_MOST_BYTES);
	q->text = at = strdup(text);
	if (!at)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	while (!ret && (part = strsep(&at, "&")))
		ret = *part ? add_pair(q, part, err) : 0;
	if (ret)
		query_free(q);
	return ret;
}

void query_free(struct query *q)
{
	vec_free(&q->pairs);
	free(q->text);
	q->text = NULL;
}

void percent_encode(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			putc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned int)(unsigned char)*text);
	}
}
