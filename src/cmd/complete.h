/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the shells' completions (scripts/completion) ask. */
#ifndef CMD_COMPLETE_H
#define CMD_COMPLETE_H

/* The name of the command that is not listed. */
#define COMPLETE "__complete"

/**
 * complete() - print what can follow on a command line
 * @argv: @argc words after "memprof"; the last one is to be completed and can be empty
 *
 * Prints a line for each candidate, its description after a tab; or one of :files, :recordings,
 * :commands, :dirs, which the shell completes itself.
 * Return: MP_EXIT_OK.
 */
int complete(int argc, char **argv);

#endif
