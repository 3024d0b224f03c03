/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof heap --retained prints and writes. */
#ifndef CMD_HEAP_HEAP_RETAINED_H
#define CMD_HEAP_HEAP_RETAINED_H

#include <stdio.h>
#include "cmd/heap/heap_sites.h"
#include "leaks/retained/retained.h"

enum retained_output {
	RETAINED_FLAMEGRAPH,
	RETAINED_ICICLE,
	RETAINED_COLLAPSED,
	RETAINED_PPROF,
	RETAINED_JSON,
	RETAINED_OUTPUTS,
};

/* The options of --retained. */
struct retained_request {
	bool tree;			    /* print a tree instead of the table */
	uint32_t depth, count;		    /* 0: not given */
	const char *of;			    /* NULL: everything */
	bool sites;			    /* a recording is joined */
	const char *file[RETAINED_OUTPUTS]; /* NULL: not wanted */
};

/* The process, for the outputs. */
struct retained_about {
	pid_t pid;
	const char *name, *mode; /* snapshot_mode_name() or "core" */
	uint64_t pause_ns;	 /* 0: a core */
	const struct census *census;
	const struct heap_sites *sites; /* NULL: there is no recording */
};

/* Return: how much must be taken (retained_take()) for all that is wanted. */
struct retained_options retained_needed(const struct retained_request *q);
/* Prints the table or the tree, and writes the files.  Return: the exit status. */
int retained_report(const struct retained *r, const struct retained_request *q,
		    const struct retained_about *about);

/* Writes ", allocated at serve() session.c:48 (93 %)". */
void heap_write_site(const struct heap_site *site, FILE *out);
/* Prints which recording it is, and how many blocks it does not have; nothing without one. */
void heap_print_sites(const struct heap_sites *s);
/* Prints what the sources of types left out. */
void heap_print_notes(const struct block_notes *notes);

/* What a line is about: "g_sessions", "1,000 x 64.0 B Session".  Return: @buf. */
const char *retained_label(const struct retained_line *l, char *buf, size_t size);
/* For retained_report().  Return: 0 or -errno. */
int retained_json(const struct retained *r, const struct retained_about *about, FILE *out);

#endif
