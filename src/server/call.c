/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/utf8.h"
#include "model/filter/amount.h"
#include "model/filter/pattern.h"
#include "server/endpoint.h"
#include "server/query.h"
#include "server/recordings.h"
#include "server/rest_filter.h"
#include "server/status.h"

/* Endpoints of bytehound that run or write scripts. */
static const char *const of_scripts[] = {"execute_script", "script_files",
					 "allocation_filter_to_script", "map_filter_to_script"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------------------------ path -- */

/* Return: the length of the part of an endpoint's path before "{number}", or of all of it. */
static size_t fixed_part(const struct endpoint *e)
{
	return strcspn(e->path, "{");
}

static bool matches(const struct endpoint *e, const char *path)
{
	size_t fixed = fixed_part(e);
	const char *rest;

	if (strncmp(e->path, path, fixed) != 0)
		return false;
	rest = path + fixed;
	if (e->path[fixed])
		return *rest && !strchr(rest, '/');
	return !*rest ||
	       (e->flags & ENDPOINT_NAMED && *rest == '/' && rest[1] && !strchr(rest + 1, '/'));
}

static unsigned int find_endpoint(struct call *c, const char *path, bool of_recording,
				  struct mp_err *err)
{
	for (const struct endpoint *e = endpoints; e->path; e++) {
		const char *number;

		if ((e->reading != READ_NONE) != of_recording || !matches(e, path))
			continue;
		c->endpoint = e;
		number = path + fixed_part(e);
		if (!e->path[fixed_part(e)])
			return HTTP_OK;
		if (!number[strspn(number, "0123456789")] && amount_integer(number, &c->number))
			return HTTP_OK;
		mp_fail(err, MP_EXIT_USAGE, -EINVAL, "'%.40s' is not a number", number);
		return HTTP_BAD_REQUEST;
	}
	for (size_t i = 0; i < COUNT(of_scripts) && of_recording; i++) {
		size_t n = strlen(of_scripts[i]);

		if (strncmp(path, of_scripts[i], n) || (path[n] && path[n] != '/'))
			continue;
		mp_fail(err, MP_EXIT_USAGE, -ENOSYS, "%s: memprof runs no scripts", of_scripts[i]);
		return HTTP_NOT_IMPLEMENTED;
	}
	mp_fail(err, MP_EXIT_USAGE, -ENOENT, "no such endpoint; /openapi.json lists them");
	return HTTP_NOT_FOUND;
}

/* @path: decoded in place. */
static unsigned int find_path(const struct recordings *r, char *path, struct call *c,
			      struct mp_err *err)
{
	char *id, *rest;

	if ((*path && *path != '/') || percent_decode(path, false) || !utf8_is_valid(path)) {
		mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			"the path does not begin with / or is not encoded correctly");
		return HTTP_BAD_REQUEST;
	}
	if (strncmp(path, "/data/", 6) != 0)
		return find_endpoint(c, path + (*path == '/'), false, err);
	id = path + 6;
	rest = id + strcspn(id, "/");
	if (*rest)
		*rest++ = 0;
	if (recordings_find(r, id, &c->recording))
		return find_endpoint(c, rest, true, err);
	mp_fail(err, MP_EXIT_USAGE, -ENOENT, "data not found");
	return HTTP_NOT_FOUND;
}

/* ------------------------------------------------------------------ values -- */

static bool is_number(const struct parameter *p, const char *value)
{
	uint64_t n;

	return !value[strspn(value, "0123456789")] && amount_integer(value, &n) &&
	       (!p->most || n <= p->most);
}

/* Return: NULL, or what the value should be. */
static const char *wanted(const struct parameter *p, const char *value)
{
	struct amount a;
	uint64_t n;
	uint32_t i;

	switch (p->kind) {
	case PARAMETER_NUMBER:
		return is_number(p, value) ? NULL : "a whole number in the range";
	case PARAMETER_BOOL:
		return !strcmp(value, "true") || !strcmp(value, "false") ? NULL : "true or false";
	case PARAMETER_WORD:
		return call_word_index(p->words, value, &i) ? NULL
							    : "one of the words of /openapi.json";
	case PARAMETER_TIME:
		return amount_time(value, &a) ? NULL
					      : "a time such as 10s, 50% or Unix milliseconds";
	case PARAMETER_DURATION:
		return amount_duration(value, &n) ? NULL : "a duration such as 10s or 100ms";
	default:
		return NULL;
	}
}

static int check_value(const struct parameter *p, const char *value, struct mp_err *err)
{
	const char *want = wanted(p, value);
	struct pattern *pattern = NULL;
	int ret = 0;

	if (want)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: '%.100s' is not %s", p->name,
			       value, want);
	if (p->kind == PARAMETER_REGEX) {
		ret = pattern_new(p->name, value, &pattern, err);
		pattern_free(pattern);
	}
	return ret;
}

/* A map by its id in this recording, as bytehound has it, not by its name or an address. */
static bool is_map_id(const struct query_pair *p)
{
	uint64_t id;

	return !strcmp(p->name, "from_map") && !p->value[strspn(p->value, "0123456789")] &&
	       amount_integer(p->value, &id);
}

static int take_pair(struct call *c, const struct query_pair *p, struct mp_err *err)
{
	uint32_t i;

	if (!utf8_is_valid(p->name) || !utf8_is_valid(p->value))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "a parameter is not valid UTF-8");
	if (call_find(c, p->name, &i)) {
		if (c->value[i])
			return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: given twice", p->name);
		c->value[i] = p->value;
		return check_value(&c->endpoint->own[i], p->value, err);
	}
	if (c->endpoint->flags & ENDPOINT_FILTERED && is_map_id(p)) {
		if (c->in_map)
			return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: given twice", p->name);
		c->in_map = true;
		amount_integer(p->value, &c->map);
		return 0;
	}
	if (c->endpoint->flags & ENDPOINT_FILTERED && rest_filter_is(p->name))
		return rest_filter_set(&c->filter, p->name, p->value, err);
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "'%.100s' is not a parameter of %s", p->name,
		       *c->endpoint->path ? c->endpoint->path : "/");
}

static int by_text(const void *a, const void *b)
{
	const struct query_pair *x = a, *y = b;
	int ret = strcmp(x->name, y->name);

	return ret ? ret : strcmp(x->value, y->value);
}

static int write_filter_text(struct call *c, struct query *q)
{
	size_t size;
	FILE *out = open_memstream(&c->filter_text, &size);
	uint32_t own;

	if (!out)
		return -ENOMEM;
	vec_sort(&q->pairs, by_text);
	vec_for_each (&q->pairs, p) {
		if (call_find(c, p->name, &own))
			continue;
		fprintf(out, "&%s=", p->name);
		percent_encode(p->value, out);
	}
	return fclose(out) ? -ENOMEM : 0;
}

static int take_query(struct call *c, struct query *q, struct mp_err *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < q->pairs.n && !ret; i++)
		ret = take_pair(c, &q->pairs.at[i], err);
	if (!ret && write_filter_text(c, q))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	c->query = q->text;
	q->text = NULL;
	return ret;
}

unsigned int call_parse(const struct recordings *r, const char *path, const char *query,
			struct call *c, struct mp_err *err)
{
	struct query q = {0};
	unsigned int status;
	char *copy = strdup(path);
	int ret;

	memset(c, 0, sizeof(*c));
	filter_init(&c->filter);
	if (!copy)
		return HTTP_UNAVAILABLE;
	status = find_path(r, copy, c, err);
	free(copy);
	if (status != HTTP_OK)
		return status;
	ret = query_parse(query, &q, err);
	if (!ret)
		ret = take_query(c, &q, err);
	query_free(&q);
	if (ret)
		call_free(c);
	return ret ? status_of(ret, err) : HTTP_OK;
}

void call_free(struct call *c)
{
	filter_free(&c->filter);
	free(c->filter_text);
	free(c->query);
	memset(c, 0, sizeof(*c));
}
