/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/filters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/printable.h"
#include "model/filter/why_empty.h"
#include "model/model.h"

static void hyphens(char *name)
{
	for (; *name && *name != '='; name++) {
		if (*name == '_')
			*name = '-';
	}
}

static bool is_filter(char *const *names, const char *arg)
{
	size_t n = strcspn(arg, "=");

	for (; *names; names++) {
		if (strlen(*names) == n && !strncmp(*names, arg, n))
			return true;
	}
	return false;
}

static char *respelled(char *const *names, const char *arg)
{
	char *copy = strdup(arg), *as_is;

	if (!copy || strncmp(arg, "--", 2) != 0)
		return copy;
	hyphens(copy + 2);
	if (is_filter(names, copy + 2))
		return copy;
	as_is = strdup(arg);
	free(copy);
	return as_is;
}

static int fill_options(struct filter_options *o, const struct option *own, size_t nown, uint32_t n)
{
	struct filter_name f;

	memcpy(o->all, own, nown * sizeof(*own));
	for (uint32_t i = 0; i < n; i++) {
		filter_describe(i, &f);
		o->names[i] = strdup(f.name);
		if (!o->names[i])
			return -ENOMEM;
		hyphens(o->names[i]);
		o->all[nown + i] =
		    (struct option){o->names[i], required_argument, NULL, FILTER_OPTION + (int)i};
	}
	return 0;
}

int filter_options_new(struct filter_options *o, const struct option *own, int argc, char **argv)
{
	struct filter_name f;
	size_t nown = 0;
	uint32_t n = 0;

	while (own[nown].name)
		nown++;
	while (filter_describe(n, &f))
		n++;
	o->all = calloc(nown + n + 1, sizeof(*o->all));
	o->names = calloc(n + 1, sizeof(*o->names));
	o->argv = calloc((size_t)argc + 1, sizeof(*o->argv));
	if (!o->all || !o->names || !o->argv || fill_options(o, own, nown, n))
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		o->argv[i] = respelled(o->names, argv[i]);
		if (!o->argv[i])
			return -ENOMEM;
	}
	return 0;
}

void filter_options_free(struct filter_options *o)
{
	for (char **p = o->names; p && *p; p++)
		free(*p);
	for (char **p = o->argv; p && *p; p++)
		free(*p);
	free(o->names);
	free(o->argv);
	free(o->all);
}

bool filter_option(const char *command, struct filter *f, int opt, const char *value)
{
	struct mp_err err = {0};
	struct filter_name name;

	if (filter_describe((uint32_t)(opt - FILTER_OPTION), &name) &&
	    !filter_set(f, name.name, value, &err))
		return true;
	usage_error("%s: %s", command, err.what);
	return false;
}

void filter_tell_empty(const struct filter *f, struct model *m)
{
	char why[256];

	if (filter_why_empty(f, m, why, sizeof(why)))
		fprintf(stderr, "memprof: %s: no %s passes the filters: %s\n",
			printable(m->source.path),
			m->info.what == MP_PAGE_FAULTS ? "page fault" : "allocation",
			printable(why));
}

void filter_help(void)
{
	struct filter_name f, next;
	char line[128], name[64];

	for (uint32_t i = 0; filter_describe(i, &f); i++) {
		if (!f.help)
			continue;
		snprintf(name, sizeof(name), "%s", f.name);
		hyphens(name);
		if (filter_describe(i + 1, &next) && !next.help)
			snprintf(line, sizeof(line), "--%s, ...-max %s", name, f.value);
		else
			snprintf(line, sizeof(line), "--%s %s", name, f.value);
		printf(strlen(line) > 38 ? "  %s\n%42s%s\n" : "  %-39s %.0s%s\n", line, "", f.help);
	}
}
