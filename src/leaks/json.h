/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The report of memprof leaks as JSON. */
#ifndef LEAKS_JSON_H
#define LEAKS_JSON_H

#include <stdio.h>
#include <yajl/yajl_gen.h>
#include "leaks/analysis.h"

/* Writes what a recording adds to the report; each function writes one JSON value. */
struct leaks_recording {
	void (*about)(void *ctx, yajl_gen g);		      /* of the recording itself */
	void (*stack)(void *ctx, yajl_gen g, uint32_t stack); /* a stack's frames */
	void *ctx;
};

/* Writes @a as one JSON object, described in doc/leaks.md.  @mode: snapshot_mode_name() or "core".
 * @r: NULL: there is no recording.  Return: 0 or -errno. */
int leaks_json(const struct analysis *a, const char *mode, const struct leaks_recording *r,
	       FILE *out);

#endif
