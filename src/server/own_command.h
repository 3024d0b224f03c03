/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a command of this memprof in a process of its own, from a worker, and passes on what it writes. */
#ifndef SERVER_OWN_COMMAND_H
#define SERVER_OWN_COMMAND_H

#include <stdint.h>
#include <stdio.h>

/* Where the command is to write what is passed on. */
#define OWN_COMMAND_OUTPUT "/dev/fd/3"

struct own_command_end {
	int status;	/* as of waitpid() */
	uint64_t bytes; /* that it wrote */
	char said[400]; /* the last line of its standard error */
};

/**
 * own_command_run() - run a command until it ends
 * @argv: with the name of the program; ends with NULL
 *
 * The command ends with SIGTERM when the worker ends.  It has not the worker's limit of memory.
 * Return: 0 with @end; or a negative errno: it could not be started, or @out does not take more, so that the command was
 * ended.
 */
int own_command_run(const char *const *argv, FILE *out, struct own_command_end *end);

#endif
