/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks as reports show them: template arguments are shortened, and each run of the runtime's
 * frames (model/names/runtime.h) is folded into its outermost one, the function that the user's code
 * called.  A stack without a frame of the user's own code is not folded.
 *
 * The frames of each address are found and named once.
 */
#ifndef MODEL_NAMES_SHOWN_H
#define MODEL_NAMES_SHOWN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/vec.h"
#include "model/names/frames.h"

struct model;
struct shown_cache;

struct shown_frame {
	struct frame at;   /* function: shortened; of a run: its outermost frame */
	const char *full;  /* the function's name as it is recorded */
	uint32_t number;   /* of the frame, counted from 0; the same wherever its address is */
	uint32_t frames;   /* how many frames it shows: more than 1: a folded run */
	uint32_t runtimes; /* bits: 1 << enum runtime; 0: the user's own code */
};

/* Innermost frame first.  Valid until the next call. */
struct shown_stack {
	const struct shown_frame *at;
	uint32_t n;
	uint32_t site; /* index of the first frame of the user's own code; n: there is none */
};

/* How the stacks of a model are shown; set by the command before the first stack is. */
struct shown {
	bool full;	 /* --full-stacks: every frame, with its full name */
	uint32_t frames; /* --frames: most lines of a stack in a list; 0: the list's default */
	bool lines;	 /* --lines: folded stacks have source lines */
	struct shown_cache *cache; /* of model/names/shown.c */
};

/* Gets a stack as it is to be shown.  @id: an unknown one is stack 0.  Return: 0 or -ENOMEM,
 * with no frames. */
int shown_stack(struct model *m, uint32_t id, struct shown_stack *s);
/* As shown_stack(), with every frame. */
int shown_every(struct model *m, uint32_t id, struct shown_stack *s);
/* Return: the first frame that self costs belong to: the site, or 0 if every frame is shown or
 * there is no site. */
uint32_t shown_first(const struct model *m, const struct shown_stack *s);
/* Return: number of frames in the entries from @from on, before @to. */
uint32_t shown_count(const struct shown_stack *s, uint32_t from, uint32_t to);
/* Formats "libstdc++ and libc" into @buf.  @runtimes: at least one.  Return: @buf. */
#define SHOWN_RUNTIMES 96
const char *shown_runtimes(uint32_t runtimes, char buf[SHOWN_RUNTIMES]);

void shown_free(struct shown *s);

/* A stack of frames that are in no model.  Zero-initialize; to be freed by shown_list_free(). */
struct shown_list {
	VEC(struct shown_frame) at;
	VEC(char *) names; /* owned: shortened ones, and others that must live as long */
};

/* Adds the next outer frame, whose texts must live as long as the list.  @full: with its full name.
 * @in_program: as for runtime_of().  Return: 0 or -ENOMEM. */
int shown_list_add(struct shown_list *l, const struct frame *f, bool full, bool in_program);
/* Return: the stack with every frame, valid as long as the list is not changed. */
struct shown_stack shown_list_every(const struct shown_list *l);
/* Folds the list.  Return: the stack, valid as long as the list is not changed. */
struct shown_stack shown_list_fold(struct shown_list *l);
void shown_list_free(struct shown_list *l);

#endif
