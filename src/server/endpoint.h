/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The endpoints: their paths, parameters, and the functions in answers/ that write the answers. */
#ifndef SERVER_ENDPOINT_H
#define SERVER_ENDPOINT_H

#include <stdbool.h>
#include <stdio.h>
#include "lib/err.h"
#include "server/call.h"

struct frame_counts;
struct running;
struct model;
struct recordings;

#define TYPE_JSON      "application/json"
#define TYPE_JSON_UTF8 "application/json; charset=utf-8"
#define TYPE_TEXT      "text/plain; charset=utf-8"
#define TYPE_HTML      "text/html; charset=utf-8"
#define TYPE_SVG       "image/svg+xml"
#define TYPE_EVENTS    "text/event-stream"
#define TYPE_BINARY    "application/octet-stream"

/* What an answer is made of. */
struct answer {
	const struct call *call;
	const struct recordings *recordings;
	/* The recording with the call's filter; NULL: the endpoint is of no recording. */
	struct model *m;
	struct running *live; /* READ_LIVE */
	/* Made by frames.c when first needed; lives as long as the model. */
	struct frame_counts **counts;
	FILE *out;
};

/*
 * Writes the answer to @a->out, from its first byte to its last, without keeping the whole in memory.
 * Can be called several times for one model.
 *
 * Return: 0; or a negative errno with @err filled.  If nothing was flushed to the client yet, the
 * client gets a status and the text of @err instead: -ENOENT 404, -ESRCH and -EBUSY 409, -ENOSYS 501,
 * MP_EXIT_USAGE 400, -ENOMEM 503, anything else 500; otherwise the connection is cut, so that the client sees that the answer is incomplete.
 */
typedef int answer_write(struct answer *a, struct mp_err *err);

/* How the recording is read for an endpoint. */
enum reading {
	READ_NONE,    /* not at all */
	READ_MODEL,   /* model_load() with the call's filter; answers can call model_replay() */
	READ_ITSELF,  /* the answer reads the file itself, not as a model */
	READ_LIVE,    /* not the file: what its recorder says (running.h) */
	READ_STREAM,  /* the same, again and again: the answer has no end, write() is not called */
	ASK_RECORDER, /* something about the recorder or its process, by POST */
};

enum endpoint_flags {
	ENDPOINT_FILTERED = 1, /* takes the filters of allocations */
	/* PATH/FILENAME is the same, so that browsers save it under that name */
	ENDPOINT_NAMED = 2,
};

struct endpoint {
	/* Below /data/{id}/, or for READ_NONE below /.  "{number}" matches a number. */
	const char *path;
	const char *type; /* Content-Type */
	enum reading reading;
	unsigned int flags;	     /* enum endpoint_flags */
	const struct parameter *own; /* NULL: none */
	answer_write *write;
};

/* Parameters of lists, for an endpoint's own parameters; with a sort_by of its own. */
/* clang-format off */
#define LIST_PARAMETERS(keys) \
	{"skip", PARAMETER_NUMBER, 0, NULL}, \
	{"count", PARAMETER_NUMBER, UINT32_MAX, NULL}, \
	{"order", PARAMETER_WORD, 0, order_words}, \
	{"sort_by", PARAMETER_WORD, 0, keys}
#define FRAME_PARAMETERS \
	{"strip_template_args", PARAMETER_BOOL, 0, NULL}
/* clang-format on */
extern const char *const order_words[]; /* asc, dsc */

/* Ends with an entry without a path. */
extern const struct endpoint endpoints[];

#endif
