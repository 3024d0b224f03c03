/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES  (512u << 20)
#define BUFFER	   (256u << 10)
#define MAX_LINE   (64u << 10)
#define MAX_DIGITS 16

/* Reads a hexadecimal number and the blank after it.  Return: what follows, or NULL. */
static const char *parse_number(const char *at, uint64_t *value)
{
	size_t digits;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	digits = strspn(at, "0123456789abcdefABCDEF");
	if (!digits || digits > MAX_DIGITS || at[digits] != ' ')
		return NULL;
	*value = strtoull(at, NULL, 16);
	return at + digits + 1;
}

/* @line: @n bytes and a NUL, which is changed.  Return: whether it is valid. */
static bool parse_line(char *line, size_t n, struct jit_code *code)
{
	const char *at = parse_number(line, &code->start);

	if (at)
		at = parse_number(at, &code->size);
	if (!at || !*at || strlen(line) != n || !code->size ||
	    code->start + code->size < code->start)
		return false;
	if (line + n - at > JIT_MAX_NAME)
		strcpy(line + (at - line) + JIT_MAX_NAME - 3, "...");
	code->name = at;
	return true;
}

static int use_line(char *line, size_t n, bool late, struct jit_names *names, struct jit_read *r)
{
	struct jit_code code = {.late = late};

	line[n] = 0;
	if (!parse_line(line, n, &code)) {
		r->invalid++;
		return 0;
	}
	r->codes++;
	return jit_names_put(names, &code);
}

/* The part of the file that is in memory. */
struct window {
	char *at;
	size_t n;
	uint64_t offset; /* of its first byte in the file */
	bool skips;	 /* its beginning is the rest of a line that is too long */
};

/* Uses all lines of the window that end in it, and removes them. */
static int use_window(struct window *w, uint64_t since, struct jit_names *names, struct jit_read *r)
{
	char *line = w->at, *end = w->at + w->n, *newline;
	int ret = 0;

	while (!ret && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		uint64_t offset = w->offset + (uint64_t)(line - w->at);
		size_t n = (size_t)(newline - line);

		if (!w->skips && n <= MAX_LINE)
			ret = use_line(line, n, offset >= since, names, r);
		else
			r->invalid += !w->skips;
		w->skips = false;
		line = newline + 1;
	}
	if ((size_t)(end - line) > MAX_LINE) {
		r->invalid += !w->skips;
		w->skips = true;
		line = end;
	}
	w->offset += (uint64_t)(line - w->at);
	w->n = (size_t)(end - line);
	memmove(w->at, line, w->n);
	return ret;
}

int perf_map_read(int fd, uint64_t since, struct jit_names *names, struct jit_read *r)
{
	struct window w = {.at = malloc(BUFFER)};
	int ret = w.at ? 0 : -ENOMEM;
	ssize_t got = 0;

	*r = (struct jit_read){0};
	while (!ret && w.offset + w.n < MAX_BYTES) {
		got = pread(fd, w.at + w.n, BUFFER - w.n, (off_t)(w.offset + w.n));
		if (got <= 0)
			break;
		w.n += (size_t)got;
		ret = use_window(&w, since, names, r);
	}
	if (got < 0)
		ret = -errno;
	r->partial = ret || got > 0;
	if (r->partial)
		jit_names_leave_out(names);
	free(w.at);
	return ret == -E2BIG ? 0 : ret;
}
