/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options of a command, as its help text lists them. */
#ifndef CMD_OPTIONS_HELP_TEXT_H
#define CMD_OPTIONS_HELP_TEXT_H

#include "cmd/commands.h"

struct help_option {
	char name[48];	  /* with its hyphens: "--pid", "-p" */
	char value[40];	  /* placeholder of its value: "PID"; "": it takes none */
	const char *text; /* the first line of its description, with its new line; "": none */
};

/* Return: what the command prints with --help, to be freed; NULL: out of memory. */
char *help_text_of(const struct command *c);

/* Calls @take for each option in the help text; "--x-min, ...-max N" are two. */
void help_options(const char *text, void (*take)(void *ctx, const struct help_option *o),
		  void *ctx);

#endif
