/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/steps.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/deadline.h"
#include "lib/printable.h"

#define ROOM	  (256u << 10)
#define LINE_SIZE 512

struct steps {
	void (*out)(const char *text, size_t n);
	uint64_t start;
	size_t used, dropped;
	char text[ROOM];
};

struct steps *steps_new(void (*out)(const char *text, size_t n))
{
	struct steps *s = malloc(sizeof(*s));

	if (s) {
		s->out = out;
		s->start = mono_ns();
		s->used = s->dropped = 0;
	}
	return s;
}

void steps_add(struct steps *s, const char *fmt, ...)
{
	char line[LINE_SIZE];
	va_list ap;

	if (!s)
		return;
	if (s->used + 2 * LINE_SIZE > ROOM) {
		s->dropped++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Names of functions and files are the target's. */
	s->used += (size_t)snprintf(s->text + s->used, 2 * LINE_SIZE, "%10.3f ms  %s\n",
				    (double)(mono_ns() - s->start) / 1e6,
				    printable_text(line, (char[LINE_SIZE]){0}, LINE_SIZE));
}

void steps_flush(struct steps *s)
{
	size_t dropped;

	if (!s || !s->used)
		return;
	dropped = s->dropped;
	s->out(s->text, s->used);
	s->used = s->dropped = 0;
	if (dropped) {
		steps_add(s, "%zu more steps, for which there was no room", dropped);
		steps_flush(s);
	}
}

void steps_free(struct steps *s)
{
	steps_flush(s);
	free(s);
}
