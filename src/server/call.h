/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A request, parsed: which endpoint, of which recording, with which parameters.
 *
 * The parameters are those of the endpoint (endpoints.c) and, if it says so, the filters of
 * model/filter/filter.h under bytehound's names and with bytehound's meanings (doc/rest.md).  Everything is
 * checked here, so the code of an answer finds only valid values.
 */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "model/filter/filter.h"

struct endpoint;
struct recordings;
struct view;

/* What a value must be. */
enum parameter_kind {
	PARAMETER_NUMBER,   /* decimal digits, at most .most (0: 2^64 - 1) */
	PARAMETER_BOOL,	    /* true or false */
	PARAMETER_WORD,	    /* one of .words; the first is the default */
	PARAMETER_TIME,	    /* amount_time() */
	PARAMETER_DURATION, /* amount_duration() */
	PARAMETER_REGEX,    /* a pattern (model/filter/pattern.h) */
	PARAMETER_TEXT,	    /* anything */
};

struct parameter {
	const char *name; /* NULL: the end of the list */
	enum parameter_kind kind;
	uint64_t most;
	const char *const *words; /* ends with NULL */
};

/* Most parameters of one endpoint, without the filters. */
#define CALL_VALUES 40

struct call {
	const struct endpoint *endpoint;
	uint32_t recording;   /* index; of endpoints of a recording */
	uint64_t number;      /* the number in the path, as in backtrace/{number} */
	struct filter filter; /* empty if the endpoint has no filters */
	bool in_map;	      /* and blocks must be in a map: answers/map_list.h */
	uint64_t map;	      /* its id */
	/* The same filter has the same text: &NAME=VALUE for each condition, percent-encoded */
	char *filter_text;
	char *query;			/* decoded; owns the values */
	const char *value[CALL_VALUES]; /* of endpoint->own; NULL: not given */
};

/**
 * call_parse() - parse a request
 * @path: as sent, percent-encoded
 * @query: as sent, without '?'; NULL: none
 *
 * Return: 200 with @c filled, to be freed by call_free(); or the HTTP status of a refusal with
 * @err, which names the parameter; then @c need not be freed.
 */
unsigned int call_parse(const struct recordings *r, const char *path, const char *query,
			struct call *c, struct mp_err *err);
void call_free(struct call *c);

/* Return: whether @name is a parameter of the call's endpoint; then @index is that in call.value. */
bool call_find(const struct call *c, const char *name, uint32_t *index);
/* Return: whether @value is one of @words; then @index is set. */
bool call_word_index(const char *const *words, const char *value, uint32_t *index);

/* The values of the endpoint's own parameters.  @name: one of them. */
/* Return: the text; NULL: not given. */
const char *call_text(const struct call *c, const char *name);
uint64_t call_number(const struct call *c, const char *name, uint64_t otherwise);
/* Return: false if it was not given. */
bool call_true(const struct call *c, const char *name);
/* Return: the index of the word in the parameter's list; 0 if it was not given. */
uint32_t call_word(const struct call *c, const char *name);
/* Sets skip, count, order and sort (the index of sort_by's word) from the parameters of
 * LIST_PARAMETERS. */
void call_view(const struct call *c, struct view *v);

#endif
