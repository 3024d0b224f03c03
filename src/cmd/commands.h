/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of commands. */
#ifndef CMD_COMMANDS_H
#define CMD_COMMANDS_H

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* one line */
};

/* In the order of memprof --help; ended by one without a name. */
extern const struct command commands[];

#endif
