/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands, one file each.  Only this folder prints and decides exit statuses. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <getopt.h>
#include "lib/err.h"

int cmd_attach(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_heap(int argc, char **argv);
int cmd_extract(int argc, char **argv);
int cmd_flush(int argc, char **argv);
int cmd_gather(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_leaks(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_server(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_strip(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_verify(int argc, char **argv);

/* Prints the error as "memprof: what" on stderr.  Return: the exit status in @err. */
int complain(const struct mp_err *err);
/* Prints a complaint about the command line and where to find help.  @fmt begins with the command's
 * name and a colon; the hint names that command.  Return: MP_EXIT_USAGE. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As usage_error(), after getopt_long() with its own messages off returned '?' or ':'.  @options:
 * as given to getopt_long(); an unknown option is compared with their names. */
int option_error(const char *command, int opt, char *const *argv, const struct option *options);
/* Return: the long name of the option for which getopt_long() returns @opt; "" if there is none. */
const char *option_name(const struct option *options, int opt);
/* As usage_error(), for a surplus argument of a command that has -p. */
int unexpected_argument(const char *command, const char *arg);

/* Return: for struct target: with --debug, prints each step on stderr; else NULL. */
struct steps *debug_steps(void);

#endif
