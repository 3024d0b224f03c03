/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As LeakSanitizer's TemplateMatch: '*' matches anything; without '^' and '$' the pattern can match
 * anywhere. */
bool suppression_matches(const char *pattern, const char *text)
{
	bool anchored = *pattern == '^';
	const char *star = NULL, *resume = NULL;

	if (anchored)
		pattern++;
	else
		star = pattern, resume = text;
	for (;;) {
		if (!*pattern)
			return true;
		if (*pattern == '$' && !pattern[1]) {
			if (!*text)
				return true;
		} else if (*pattern == '*') {
			star = ++pattern;
			resume = text;
			continue;
		} else if (*text && *pattern == *text) {
			pattern++;
			text++;
			continue;
		}
		if (!star || !*resume)
			return false;
		pattern = star;
		text = ++resume;
	}
}

bool suppressions_match(const struct suppressions *s, const char *text)
{
	for (size_t i = 0; text && i < s->pattern.n; i++) {
		if (suppression_matches(s->pattern.at[i], text))
			return true;
	}
	return false;
}

static int add_pattern(struct suppressions *s, const char *pattern, struct mp_err *err)
{
	if (!vec_push(&s->pattern, NULL)) {
		char **last = &s->pattern.at[s->pattern.n - 1];

		*last = strdup(pattern);
		if (*last)
			return 0;
		s->pattern.n--;
	}
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

int suppressions_read(struct suppressions *s, const char *file, struct mp_err *err)
{
	FILE *f = fopen(file, "re");
	char line[4096];
	int n = 0, ret = 0;

	if (!f)
		return mp_fail(err, MP_EXIT_USAGE, -errno, "cannot read %s: %s", file,
			       strerror(errno));
	while (!ret && fgets(line, sizeof(line), f)) {
		char *p = line + strspn(line, " \t");

		n++;
		p[strcspn(p, "\r\n")] = 0;
		if (!*p || *p == '#')
			continue;
		if (strncmp(p, "leak:", 5) != 0 || !p[5])
			ret =
			    mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				    "%s, line %d: not a suppression such as leak:pattern", file, n);
		else
			ret = add_pattern(s, p + 5, err);
	}
	if (!ret && ferror(f))
		ret = mp_fail(err, MP_EXIT_USAGE, -EIO, "cannot read %s", file);
	fclose(f);
	return ret;
}

void suppressions_free(struct suppressions *s)
{
	vec_for_each (&s->pattern, p)
		free(*p);
	vec_free(&s->pattern);
}
