/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes the file name of a recording from the pattern of --output. */
#ifndef CONTROL_OUTPUT_NAME_H
#define CONTROL_OUTPUT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Are all placeholders in @pattern known? */
bool output_pattern_ok(const char *pattern);
/* Expands %p (pid), %e (command), %t (time), %n (count) and %%.  If a second file would get the
 * name of the first, pid and count are inserted before the suffix. */
void output_name(const char *pattern, pid_t pid, uint32_t count, bool again, char *out,
		 size_t size);
/* The file name of a piece of the recording @name: @number is inserted before the suffix. */
void output_piece_name(const char *name, uint32_t number, char *out, size_t size);
/* Makes @path absolute, for processes that read the journal from another directory. */
void output_absolute(const char *path, char *out, size_t size);

/* Makes the pattern of the name @text, with each '%' doubled.  It is cut if it has more than @size - 1 bytes. */
void output_literal(const char *text, char *pattern, size_t size);

#endif
