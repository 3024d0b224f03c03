/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memprof top: a live view of the heap of a process that is being recorded.
 *
 * feed.h gets the numbers, past.h remembers earlier ones, table.h makes the rows.  state.h has what
 * the user sees, keys.h changes it, draw.h puts it on the screen (screen.h).
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "top/table.h"

struct top_options {
	pid_t pid;
	uint64_t delay_ms; /* between two looks */
	enum table_by by;
	enum table_sort sort;
	const char *filter; /* a regular expression; NULL: none */
	bool colours;
	bool full; /* stacks with every frame */
};

/* Can the terminal show it?  To be called before anything is done to the process.  Return: 0 or a
 * negative errno with @err. */
int top_check_terminal(struct mp_err *err);

/**
 * top_run() - look at the recording of a process until the user quits
 *
 * Return: 0, also if the process has ended, or a negative errno with @err.  The terminal is as it
 * was in both cases.
 */
int top_run(const struct top_options *o, struct mp_err *err);

/* The words of --by and --sort, by enum table_by and enum table_sort; both end with NULL. */
extern const char *const top_by_words[], *const top_sort_words[];
/* Parse them.  Return: false if @text is none of them. */
bool top_parse_by(const char *text, enum table_by *by);
bool top_parse_sort(const char *text, enum table_sort *sort);

#endif
