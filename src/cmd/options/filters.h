/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Filters as command line options, as in --size-min 64k.  A name can be written with '_' for '-'.
 */
#ifndef CMD_OPTIONS_FILTERS_H
#define CMD_OPTIONS_FILTERS_H

#include <getopt.h>
#include "model/filter/filter.h"

/* The value that getopt_long() returns for the first filter; the other filters follow. */
#define FILTER_OPTION 0x2000

struct filter_options {
	struct option *all; /* the command's own options, then the filters, then an empty one */
	char **argv;	    /* copy with '-' for each '_' in a filter's name */
	char **names;
};

/**
 * filter_options_new() - make the arguments for getopt_long()
 * @own: the command's options, ended by an empty one
 *
 * Return: 0 with @o filled, to be freed by filter_options_free(), or -ENOMEM.
 */
int filter_options_new(struct filter_options *o, const struct option *own, int argc, char **argv);
void filter_options_free(struct filter_options *o);

/* Sets the filter that getopt_long() returned as @opt.  Return: false after it printed an error,
 * which names @command. */
bool filter_option(const char *command, struct filter *f, int opt, const char *value);

struct model;
/* If no allocation of @m passed @f, says so and why, in a line on stderr. */
void filter_tell_empty(const struct filter *f, struct model *m);

/* Prints the filters' names and meanings, for --help. */
void filter_help(void);

#endif
