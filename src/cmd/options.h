/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options that attach and run share, from the command line and the environment. */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include <getopt.h>
#include "control/options.h"

/* Reads options from the environment: MEMPROF_OUTPUT for --output and so on, MEMPROF_LOSSLESS=1.
 * Return: 0, or -1 after it printed that a value is bad. */
int recording_environment(struct recording_options *o);

/* Handles an option that attach and run share; @opt as getopt_long() returned it.  Return: 1
 * handled, 0 not a shared option, -1 after it printed an error. */
int recording_option(int opt, const char *arg, struct recording_options *o);
/* Checks for options that exclude each other, and sets those implied by others.  Return: 0, or the
 * exit status after it printed an error. */
int recording_options_settle(struct recording_options *o);
#define RECORDING_SHORT "o:q"
#define RECORDING_LONG                                                                             \
	{"output", required_argument, NULL, 'o'}, {"for", required_argument, NULL, 'F'},           \
	    {"lossless", no_argument, NULL, 'L'}, {"follow-fork", no_argument, NULL, 'W'},         \
	    {"follow-exec", no_argument, NULL, 'X'},                                               \
	    {"carry-budget", required_argument, NULL, 'Y'},                                        \
	    {"ring-size", required_argument, NULL, 'R'},                                           \
	    {"queue-size", required_argument, NULL, 'Q'}, {"cull", required_argument, NULL, 'C'},  \
	    {"depth", required_argument, NULL, 'D'}, {"thread", required_argument, NULL, 'T'},     \
	    {"via", required_argument, NULL, 'V'}, {"stack-size", required_argument, NULL, 'K'},   \
	    {"event", required_argument, NULL, 'E'}, {"free-stacks", no_argument, NULL, 'J'},      \
	    {"zero", no_argument, NULL, 'Z'}, {"sample", required_argument, NULL, 'S'},            \
	    {"rotate", required_argument, NULL, 'M'}, {"embed", no_argument, NULL, 'N'},           \
	    {"paused", no_argument, NULL, 'P'},                                                    \
	{                                                                                          \
		"quiet", no_argument, NULL, 'q'                                                    \
	}

#endif
