/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where continuous profiles go (attach --push):
 *
 * - otlp+http://HOST[:PORT][/PATH]: OpenTelemetry's profiles; without PATH /v1development/profiles
 * - pyroscope+http://HOST[:PORT][/PREFIX]: push.v1 of Pyroscope; if the path ends in /ingest, that interface
 * - parca+http://HOST[:PORT][/PREFIX]: WriteRaw of Parca
 * - a path, or file://PATH: a directory, which gets a pprof file for each window
 *
 * and the same with https.
 */
#ifndef PUSH_DESTINATION_H
#define PUSH_DESTINATION_H

#include "lib/err.h"
#include "lib/vec.h"

#define PUSH_DESTINATIONS 8 /* at most, of a recording */

enum destination_kind {
	DESTINATION_OTLP,
	DESTINATION_PYROSCOPE,
	DESTINATION_INGEST,
	DESTINATION_PARCA,
	DESTINATION_DIRECTORY,
};

struct destination {
	enum destination_kind kind;
	char *url; /* to which requests are sent; or the directory */
	/* Of requests, "Name: value", ended by NULL; with credentials. */
	VEC(char *) header;
};

/* Takes the value of --push.  Return: 0 with @d, to be freed by destination_free(); or -EINVAL (MP_EXIT_USAGE) or -ENOMEM
 * with @err. */
int destination_parse(const char *text, struct destination *d, struct mp_err *err);
void destination_free(struct destination *d);
/* Adds the headers of a file: a line each, "Name: value"; empty lines and those that begin with # are left out.  Return: 0
 * or a negative errno with @err. */
int destination_read_headers(struct destination *d, const char *path, struct mp_err *err);
/* Adds a header.  Return: 0, -EINVAL: it is none, or -ENOMEM. */
int destination_add_header(struct destination *d, const char *header);

#endif
