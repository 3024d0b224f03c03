/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The outputs of `memprof report`: a format and a file each, as --json A --flamegraph B names them. */
#ifndef CMD_OUTPUTS_H
#define CMD_OUTPUTS_H

#include <stdbool.h>
#include "cmd/formats.h"

struct outputs {
	struct {
		enum format format;
		const char *file; /* NULL: not named; "-": standard output */
	} at[NFORMATS];
	uint32_t n;
	bool open; /* the next word of the command line is the file of the last output */
};

/* Adds what getopt_long() returned for an option of FORMAT_OPTIONS.  @value: the option's argument,
 * or NULL: the file, but not that of --peek and --annotate, whose file only -o names.  Return: 0, or
 * the exit status after it printed an error. */
int outputs_add(struct outputs *o, enum format format, const char *value);
/* Takes a word that is no option as the file of the format option before it.  Return: false if no
 * format option is directly before it. */
bool outputs_take_word(struct outputs *o, const char *word);

/* Checks the outputs when all are known: two must not share a file, and none may overwrite a
 * recording.  @usual: the argument of -o, for the only output without a file; or NULL.  Return: as
 * outputs_add(). */
int outputs_settle(struct outputs *o, const char *usual);

bool outputs_have(const struct outputs *o, enum format format);

#endif
