/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The stacks of a model grouped by the place in the user's own code (model/names/shown.h) that they lead
 * to: recursion and different callers make many stacks of one place.
 */
#ifndef MODEL_PLACES_H
#define MODEL_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"
#include "model/group.h"
#include "model/names/frames.h"

struct model;

/* What stacks of one place have in common: of the first frame of the user's own code. */
enum group_by {
	GROUP_BY_LINE, /* without line information the address of the call */
	GROUP_BY_FUNCTION,
	GROUP_BY_LIBRARY, /* or program */
	GROUP_BY_CLASS,	  /* the class or namespace of the function */
	GROUP_BY_STACK,	  /* everything: each stack is a place */
	GROUP_BYS,
};

struct place {
	struct group sum;
	struct frame at;   /* of the example; as in shown_frame */
	uint32_t scope;	   /* length of the class in at.function; 0: none */
	uint32_t stacks;   /* number of stacks */
	uint32_t example;  /* the stack with the highest cost */
	uint32_t position; /* its index when the places were found; for places_find() */
	uint64_t cost;	   /* of sum */
	uint64_t key;	   /* hash of what its stacks have in common: the same in later places */
};

struct places {
	enum group_by by;
	VEC(struct place) at; /* highest cost first */
	uint32_t *of_stack;   /* [stack id]: its place in at; PLACE_NONE: not counted */
};
#define PLACE_NONE UINT32_MAX

/**
 * places_find() - group the stacks of a model
 * @every: also stacks whose @cost is 0, but that allocated, freed or mapped something
 *
 * A stack without a frame of the user's own code counts for the caller of its innermost frame.
 * Return: 0 with @p filled, to be freed by places_free(), or -ENOMEM with nothing to free.
 */
int places_find(struct model *m, enum group_by by, enum cost cost, bool every, struct places *p);
void places_free(struct places *p);

/* Parses "line", "function" and so on.  Return: true with @by set. */
bool group_by_parse(const char *text, enum group_by *by);
const char *group_by_text(enum group_by by);

#endif
