/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/filter/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes milliseconds for the worst pattern; real names need less than a thousandth of it. */
#define MATCH_LIMIT	1000000u
#define HEAP_LIMIT_KIB	4096u
#define PATTERN_MAX	4096u
#define PATTERN_NESTING 100u

struct pattern {
	char name[64];
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->match);
	pcre2_code_free(p->code);
	free(p);
}

static pcre2_code *compile(const char *text, int *error, size_t *at)
{
	/* Names come from foreign programs: invalid UTF-8 does not match, but is no error. */
	uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *c = pcre2_compile_context_create(NULL);
	pcre2_code *code;

	*error = PCRE2_ERROR_HEAP_FAILED;
	if (!c)
		return NULL;
	pcre2_set_max_pattern_length(c, PATTERN_MAX);
	pcre2_set_parens_nest_limit(c, PATTERN_NESTING);
	code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, error, at, c);
	pcre2_compile_context_free(c);
	return code;
}

int pattern_new(const char *name, const char *text, struct pattern **out, struct mp_err *err)
{
	struct pattern *p = calloc(1, sizeof(*p));
	unsigned char why[200];
	size_t at = 0;
	int error;

	if (!p)
		return -ENOMEM;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->code = compile(text, &error, &at);
	if (!p->code) {
		free(p);
		pcre2_get_error_message(error, why, sizeof(why));
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s: %s at offset %zu", name,
			       (const char *)why, at);
	}
	p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	if (!p->match || !p->limits) {
		pattern_free(p);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	/* Compiled to machine code if possible: the limits hold then, too. */
	(void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
	pcre2_set_match_limit(p->limits, MATCH_LIMIT);
	pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
	*out = p;
	return 0;
}

int pattern_find(const struct pattern *p, const char *subject, struct mp_err *err)
{
	int ret =
	    pcre2_match(p->code, (PCRE2_SPTR)subject, strlen(subject), 0, 0, p->match, p->limits);

	if (ret >= 0)
		return 1;
	if (ret == PCRE2_ERROR_NOMATCH)
		return 0;
	return mp_fail(err, MP_EXIT_USAGE, -E2BIG, "%s: the search costs too much on '%.100s'",
		       p->name, subject);
}
