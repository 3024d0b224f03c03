/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof heap --growth, --save and memprof heap diff.  Their exit statuses are those of memprof
 * leaks. */
#ifndef CMD_HEAP_HEAP_GROWTH_H
#define CMD_HEAP_HEAP_GROWTH_H

#include <stdio.h>
#include "leaks/growth/growth.h"
#include "snapshot/snapshot.h"

struct growth_request {
	uint64_t duration_ms;  /* from the first look to the last; 0: only one look, for .save */
	uint32_t samples;      /* looks; 0: two */
	const char *save;      /* file for the last look; NULL: none */
	const char *json;      /* NULL: none */
	uint32_t depth, count; /* levels and lines of each level; 0: not given */
	bool has_budget;
	struct growth_budget budget;
};

/* Parses "10MB", "64k/s", "10MiB/h".  Return: false if @text is no budget. */
bool growth_parse_budget(const char *text, struct growth_budget *b);

/* Looks at a process, and prints what grew.  @t: from target_look().  Return: the exit status. */
int heap_growth_run(struct target *t, enum snapshot_mode mode, const struct growth_request *q);
/* Saves a look at a core file.  Return: the exit status. */
int heap_save_core(const char *core, const char *exe, const struct growth_request *q);
/* memprof heap diff; @argv: without "heap".  Return: the exit status. */
int heap_diff(int argc, char **argv);

/* Prints the result, writes the files and judges the budget.  @cut: why the looks ended early, or
 * NULL.  Return: the exit status. */
int growth_report(const struct heap_growth *g, const struct growth_request *q, const char *cut);
/* Prints what is new of a look: the time, pause and live bytes.  @number: from 1; of @looks, if that
 * is not 0. */
void growth_print_look(const struct look *l, size_t number, size_t looks);
/* Writes doc/heap-growth.schema.json.  Return: 0 or -errno. */
int growth_json(const struct heap_growth *g, const struct growth_request *q, FILE *out);
/* Return: the exit status for an error, after it was printed. */
int growth_complain(int error, const struct mp_err *err);

#endif
