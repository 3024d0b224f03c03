/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The process that a command is about: -p PID or -n NAME. */
#ifndef CMD_OPTIONS_PROCESS_H
#define CMD_OPTIONS_PROCESS_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/types.h>
#include "attach/proc/procfs.h"

#define PROCESS_SHORT "p:n:"
/* clang-format off */
#define PROCESS_LONG \
	{"pid", required_argument, NULL, 'p'}, \
	{"name", required_argument, NULL, 'n'}
/* clang-format on */

/**
 * process_option() - handle an option of PROCESS_LONG
 * @command: its name, for messages
 * @opt: 'p' or 'n'
 * @pid: 0, or the process of an earlier option, which is then refused
 *
 * A name is that of the process (/proc/PID/comm), or the last part of its argv[0] or of the path of
 * its executable; the case of letters counts.  If several processes have it, they are listed.
 * Return: 0; MP_EXIT_USAGE or MP_EXIT_NO_PROCESS after it printed an error.
 */
int process_option(const char *command, int opt, const char *value, pid_t *pid);

/* Reads process ids separated by blanks or commas.  Return: whether there is nothing else; @pids: to be freed in both cases. */
bool process_read_several(const char *text, struct tids *pids);

/* Prints that the command needs a process.  Return: MP_EXIT_USAGE. */
int process_missing(const char *command);

#endif
