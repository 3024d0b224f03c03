/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LEAKS_JSON_H
#define LEAKS_JSON_H

#include <stdio.h>
#include <yajl/yajl_gen.h>
#include "leaks/analysis.h"

/* What a recording adds; each writes a value. */
struct leaks_recording {
	void (*about)(void *ctx, yajl_gen g);		      /* of the recording itself */
	void (*stack)(void *ctx, yajl_gen g, uint32_t stack); /* a stack's frames */
	void *ctx;
};

/* Writes @a as one JSON object, as doc/leaks.md describes it.  @mode: snapshot_mode_name() or
 * "core".  @r: NULL: there is none.  Return: 0 or -errno. */
int leaks_json(const struct analysis *a, const char *mode, const struct leaks_recording *r,
	       FILE *out);

#endif
