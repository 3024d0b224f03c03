/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the user of memprof top sees at a moment.  It belongs to top_run(), and is changed by keys.h
 * and by each look. */
#ifndef TOP_STATE_H
#define TOP_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "top/cursor.h"
#include "top/fit.h"
#include "top/past.h"
#include "top/prompt.h"
#include "top/table.h"
#include "top/top.h"

struct feed;
struct pattern;

enum top_screen { TOP_TABLE, TOP_STACK, TOP_HELP };

/* The stack that fills the screen. */
struct top_stack {
	struct table_row row; /* as it was when it was last in the table */
	bool every;	      /* show every frame */
	bool gone;	      /* the last look has no such row */
	uint32_t first;	      /* frame at the top */
	uint32_t most;	      /* the largest useful value of first; set by drawing it */
};

struct top {
	const struct top_options *o;
	struct feed *feed;
	struct past past;
	char name[64]; /* of the process, printable */

	struct table table;
	struct table_view view;
	struct pattern *filter;
	char filter_text[PROMPT_SIZE];
	struct cursor cursor;
	char within[FIT_SIZE];	    /* name of the row whose stacks are shown */
	struct cursor outer_cursor; /* of the table that the row is in */

	enum top_screen screen, before_help;
	struct top_stack stack;
	uint32_t help_first;

	struct prompt prompt;
	char message[256]; /* in the last line until the next key */

	bool frozen;	   /* no looks are taken */
	uint64_t asked_ns; /* when the look that is under way was asked for; 0: none is */
	bool quit;
	char ended[256];	/* why there are no more looks; "": there are */
	uint64_t thinned;	/* allocations, as of the last look */
	uint32_t thinned_looks; /* looks since that last grew, if it ever did */
};

/* Makes the table again, after a look or a change of the view. */
void top_rebuild(struct top *t);
/* Shows a message in the last line. */
void top_say(struct top *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Return: whether the rates of the table can be estimates. */
bool top_rates_estimated(const struct top *t);

#endif
