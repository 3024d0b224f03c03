/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds and reads the source files that the lines of a recording name. */
#ifndef EXPORT_SOURCE_FILE_H
#define EXPORT_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

/* Where sources are on this machine: "OLD=NEW" replaces the start of a path, "DIR" is a folder that
 * has the file, or the last folders of its path. */
#define SOURCE_PREFIXES 16
struct source_prefixes {
	const char *at[SOURCE_PREFIXES];
	size_t n;
	/* Only a path that the recording has is opened, not the one that the user named: the user can be
	 * someone on another machine. */
	bool recorded_only;
};

/* Does @source name the file that the user means by @wanted: are the last parts of its path @wanted,
 * also after a prefix was replaced? */
bool source_is(const char *source, const char *wanted, const struct source_prefixes *p);

/**
 * source_open() - open a source
 * @source: its path in the recording
 * @wanted: how the user named it; opened as it is if @source is nowhere
 * @path: receives the path that was opened, to be freed by the caller
 * @changed: receives when the file was last changed
 *
 * Only regular files are opened, since a recording can name any path.
 * Return: the stream, or NULL if there is none, or memory is exhausted.
 */
FILE *source_open(const char *source, const char *wanted, const struct source_prefixes *p,
		  char **path, time_t *changed);

#endif
