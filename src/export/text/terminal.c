/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NARROWEST 20 /* columns that text needs beside its indent */

static bool colours;

static bool wanted(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

void term_colours(enum term_when when)
{
	const char *term = getenv("TERM");

	colours =
	    when == TERM_ALWAYS || (when == TERM_AUTO && isatty(STDOUT_FILENO) &&
				    !wanted("NO_COLOR") && (!term || strcmp(term, "dumb") != 0));
}

const char *term_on(FILE *out, enum term_style style)
{
	static const char *const code[] = {"\033[1m",  "\033[2m",  "\033[36m",
					   "\033[32m", "\033[33m", "\033[1;31m"};

	return colours && out == stdout ? code[style] : "";
}

const char *term_off(FILE *out)
{
	return colours && out == stdout ? "\033[0m" : "";
}

size_t term_width(FILE *out)
{
	struct winsize w = {0};

	if (out != stdout || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return 0;
	return w.ws_col;
}

static bool inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

const char *term_fit(const char *name, size_t room, char buf[TERM_NAME])
{
	size_t length = strlen(name), head, tail;

	room = room < TERM_NAME ? room : TERM_NAME - 1;
	if (length <= room || room < 3)
		return name;
	head = (room - 2) / 2;
	tail = length - (room - 2 - head);
	while (head && inside_character(name[head]))
		head--;
	while (inside_character(name[tail]))
		tail++;
	snprintf(buf, TERM_NAME, "%.*s..%s", (int)head, name, name + tail);
	return buf;
}

void term_line(FILE *out, size_t column, size_t indent, const char *fmt, ...)
{
	size_t width = term_width(out);
	char *line = NULL;
	const char *rest;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	rest = line;
	while (width > indent + NARROWEST && strlen(rest) > width - column) {
		const char *blank = memrchr(rest, ' ', width - column + 1);

		if (!blank || blank == rest)
			break;
		fprintf(out, "%.*s\n%*s", (int)(blank - rest), rest, (int)indent, "");
		rest = blank + 1;
		column = indent;
	}
	fprintf(out, "%s\n", rest);
	free(line);
}
