/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/help_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEEPEST 6 /* blanks before an option */
#define MOST	8 /* options in a line */

/* The text that was written to the file @fd. */
static char *slurp(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size < 0 ? NULL : calloc(1, (size_t)size + 1);

	if (text && pread(fd, text, (size_t)size, 0) != size) {
		free(text);
		text = NULL;
	}
	return text;
}

char *help_text_of(const struct command *c)
{
	char *argv[] = {(char[]){"memprof"}, (char[]){"--help"}, NULL}, *text = NULL;
	int fd = memfd_create("help", MFD_CLOEXEC), out = dup(STDOUT_FILENO);

	fflush(stdout);
	if (fd >= 0 && out >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
		(void)c->run(2, argv);
		fflush(stdout);
		dup2(out, STDOUT_FILENO);
		text = slurp(fd);
	}
	if (fd >= 0)
		close(fd);
	if (out >= 0)
		close(out);
	return text;
}

/* Return: where the description begins, two blanks after the options. */
static const char *description(const char *head, const char *end)
{
	for (const char *p = head; p + 1 < end; p++) {
		if (p[0] == ' ' && p[1] == ' ')
			return p;
	}
	return end;
}

/* "...-max" is the name of the option before it with -max in place of -min. */
static void name_of(struct help_option *o, const char *word, const char *before)
{
	if (strncmp(word, "...", 3) != 0)
		snprintf(o->name, sizeof(o->name), "%.47s", word);
	else
		snprintf(o->name, sizeof(o->name), "%.*s%.8s", (int)strlen(before) - 4, before,
			 word + 3);
}

/* Reads the options between @head and @end, as in "-p, --pid PID" and "--skip N, --count N". */
static void line_options(const char *head, const char *end, const char *text,
			 void (*take)(void *ctx, const struct help_option *o), void *ctx)
{
	struct help_option found[MOST] = {0};
	char copy[200], *rest = NULL;
	int n = 0, valued = 0;

	snprintf(copy, sizeof(copy), "%.*s", (int)(end - head), head);
	for (char *w = strtok_r(copy, ", ", &rest); w; w = strtok_r(NULL, ", ", &rest)) {
		bool option = *w == '-' || !strncmp(w, "...-", 4);

		if (option && n < MOST) {
			name_of(&found[n], w, n ? found[n - 1].name : "----");
			found[n++].text = text;
		}
		/* The value belongs to all names since the last value. */
		for (; !option && valued < n; valued++)
			snprintf(found[valued].value, sizeof(found[valued].value), "%.39s", w);
	}
	for (int i = 0; i < n; i++)
		take(ctx, &found[i]);
}

void help_options(const char *text, void (*take)(void *ctx, const struct help_option *o), void *ctx)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *head = line + strspn(line, " "), *about;
		size_t indent = (size_t)(head - line);

		end = line + strcspn(line, "\n");
		if (indent < 2 || indent > DEEPEST || *head != '-')
			continue;
		about = description(head, end);
		line_options(head, about, about + strspn(about, " \n"), take, ctx);
	}
}
