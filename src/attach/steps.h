/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What memprof does to a target, step by step, for --debug.  Lines are kept in memory while threads
 * are stopped, because a terminal or pipe that does not accept them must not lengthen the stop.
 */
#ifndef ATTACH_STEPS_H
#define ATTACH_STEPS_H

#include <stddef.h>

struct steps;

/* @out: receives text of complete lines.  Return: to be freed by steps_free(), or NULL when out of
 * memory. */
struct steps *steps_new(void (*out)(const char *text, size_t n));
/* Writes what is left and frees @s, which can be NULL. */
void steps_free(struct steps *s);
/* Adds a line, with the time since steps_new().  If there is no room until the next steps_flush(), it
 * is only counted.  @s NULL: does nothing. */
void steps_add(struct steps *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes the lines; no thread of the target may be stopped. */
void steps_flush(struct steps *s);

#endif
