/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Filters as options: --size-min 64k; names may be written with '_', too. */
#ifndef CMD_FILTERS_H
#define CMD_FILTERS_H

#include <getopt.h>
#include "report/filter.h"

/* getopt_long()'s value of the first filter; the others follow. */
#define FILTER_OPTION 0x2000

struct filter_options {
	struct option *all; /* the command's own, then the filters, then the end */
	char **argv;	    /* with '-' where a filter's name had '_' */
	char **names;
};

/**
 * filter_options_new() - what getopt_long() is to be given
 * @own: the command's options, ended by an empty one
 *
 * Return: 0 with @o filled, freed by filter_options_free(), or -ENOMEM.
 */
int filter_options_new(struct filter_options *o, const struct option *own, int argc, char **argv);
void filter_options_free(struct filter_options *o);

/* Sets the filter of getopt_long()'s @opt.  Return: true, or false: the reason was printed. */
bool filter_option(struct filter *f, int opt, const char *value);

/* The names and what they mean, for --help. */
void filter_help(void);

#endif
