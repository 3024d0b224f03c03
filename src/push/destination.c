/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/destination.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct protocol {
	const char *prefix;
	enum destination_kind kind;
	const char *path; /* appended to the path of the URL */
} protocols[] = {
    {"otlp+", DESTINATION_OTLP, "/v1development/profiles"},
    {"pyroscope+", DESTINATION_PYROSCOPE, "/push.v1.PusherService/Push"},
    {"parca+", DESTINATION_PARCA, "/profiles/writeraw"},
};

static int wrong(struct mp_err *err, const char *text, const char *why)
{
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "--push: '%.100s' %s", text, why);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), k = strlen(with);

	return n >= k && !strcmp(text + n - k, with);
}

/* Return: the first character behind the host and port; NULL: there is no host. */
static const char *path_of(const char *url)
{
	const char *host = strstr(url, "://") + 3, *path = host + strcspn(host, "/?#");

	return path == host ? NULL : path;
}

static int parse_url(const struct protocol *p, const char *text, struct destination *d,
		     struct mp_err *err)
{
	const char *url = text + strlen(p->prefix), *path;
	size_t n = strlen(url);
	int length;

	if (!begins(url, "http://") && !begins(url, "https://"))
		return wrong(err, text, "has neither http:// nor https:// behind its protocol");
	path = path_of(url);
	if (!path)
		return wrong(err, text, "has no host");
	if (memchr(url, '@', (size_t)(path - url)))
		return mp_fail(
		    err, MP_EXIT_USAGE, -EINVAL,
		    "--push: a URL with a password could be read by other users; put it in a file: "
		    "--push-headers");
	if (strpbrk(path, "?#"))
		return wrong(err, text, "has a query or a fragment");
	while (n > (size_t)(path - url) && url[n - 1] == '/')
		n--;
	d->kind = p->kind;
	if (d->kind == DESTINATION_PYROSCOPE && ends(url, "/ingest"))
		d->kind = DESTINATION_INGEST;
	/* A path of OTLP is complete, as that of OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT. */
	length = asprintf(&d->url, "%.*s%s", (int)n, url,
			  d->kind == DESTINATION_INGEST ||
				  (d->kind == DESTINATION_OTLP && n > (size_t)(path - url))
			      ? ""
			      : p->path);
	if (length < 0) {
		d->url = NULL;
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	return 0;
}

int destination_parse(const char *text, struct destination *d, struct mp_err *err)
{
	*d = (struct destination){.kind = DESTINATION_DIRECTORY};
	for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++) {
		if (begins(text, protocols[i].prefix))
			return parse_url(&protocols[i], text, d, err);
	}
	if (begins(text, "file://"))
		text += strlen("file://");
	else if (strstr(text, "://"))
		return wrong(err, text,
			     "does not say which protocol: otlp+http://, pyroscope+http:// or "
			     "parca+http:// (or https), or a directory");
	if (!*text)
		return wrong(err, text, "is not a directory");
	d->url = strdup(text);
	return d->url ? 0 : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

int destination_add_header(struct destination *d, const char *header)
{
	const char *colon = strchr(header, ':');
	char *end = NULL, *copy;

	for (const char *c = header; *c; c++) {
		/* Names: RFC 9110, token; values: no control characters, which could begin another header. */
		if (colon && c < colon
			? !isalnum((unsigned char)*c) && !strchr("!#$%&'*+-.^_`|~", *c)
			: ((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return -EINVAL;
	}
	if (!colon || colon == header)
		return -EINVAL;
	copy = strdup(header);
	/* The last one ends the list. */
	if (!copy || (!d->header.n && vec_push(&d->header, end)) || vec_push(&d->header, end)) {
		free(copy);
		return -ENOMEM;
	}
	d->header.at[d->header.n - 2] = copy;
	return 0;
}

int destination_read_headers(struct destination *d, const char *path, struct mp_err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int ret = 0, number = 0;
	ssize_t n;

	if (!f)
		return mp_fail(err, MP_EXIT_USAGE, -errno, "--push-headers: cannot read %.200s: %s",
			       path, strerror(errno));
	while (!ret && (n = getline(&line, &size, f)) >= 0) {
		number++;
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (*line && *line != '#')
			ret = destination_add_header(d, line);
	}
	fclose(f);
	if (line)
		explicit_bzero(line, size);
	free(line);
	if (ret == -EINVAL)
		return mp_fail(err, MP_EXIT_USAGE, ret,
			       "--push-headers: line %d of %.200s is not 'Name: value'", number,
			       path);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory") : 0;
}

void destination_free(struct destination *d)
{
	vec_for_each (&d->header, h)
		free(*h);
	vec_free(&d->header);
	free(d->url);
	d->url = NULL;
}
