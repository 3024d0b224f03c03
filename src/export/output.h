/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The output of a report: a file, compressed according to its name, or standard output.
 *
 * What is written into it is in the other files of this room, each with one format or list:
 *
 * - a whole recording: text_summary.h, faults.h, json.h, csv.h, tree.h, ascii_tree.h, flame.h,
 *   plot.h, pprof.h, heaptrack.h, speedscope.h, replay.h, peek.h, annotate.h with source_file.h,
 *   html.h with base64.h
 *
 * - a list of its parts: allocations.h, groups.h, libraries.h, sum_lists.h, growth_list.h, map_usage.h,
 *   timeline.h, stack_ends.h, site_list.h; view.h says which part of the list
 *
 * - two recordings: diff.h, diff_growth.h
 *
 * - a changed copy, or the files in it: symbolize.h, extract.h, unpack.h
 */
#ifndef EXPORT_OUTPUT_H
#define EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include "lib/err.h"

/* Refuses to write binary data to a terminal.  Return: 0, or -ENOTTY with @err (MP_EXIT_USAGE) if
 * @out is one. */
int output_refuse_terminal(FILE *out, struct mp_err *err);

/* Return: whether @path is a recording, which a report should not replace. */
bool output_is_recording(const char *path);

/**
 * output_open() - open a stream for a report
 * @path: NULL or "-": standard output; names that end in .gz and .zst are compressed
 * @gzip: compress with gzip, whatever the name; then the output must not be a terminal
 *
 * Return: the stream, to be closed by output_close(), or NULL with @err filled.
 */
FILE *output_open(const char *path, bool gzip, struct mp_err *err);

/* Return: a stream that writes to @to, which stays open, compressed with gzip; to be closed by
 * output_close().  NULL when out of memory. */
FILE *output_gzip(FILE *to);

/* Flushes and closes the stream.  Return: 0, or the first write error as a negative errno. */
int output_close(FILE *out);

#endif
