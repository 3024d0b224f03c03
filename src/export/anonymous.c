/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/anonymous.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/intern.h"
#include "lib/path.h"
#include "lib/vec.h"

enum sort { FUNCTION, SOURCE, LIBRARY, THREAD, MARK, SORTS };

struct anonymous {
	enum anonymize how;
	struct intern *names[SORTS];
	VEC(char *) text[SORTS]; /* [id - 1] */
	char *executable;	 /* path in the recording */
	char *hidden;		 /* the program's replacement name */
};

struct anonymous *anonymous_new(enum anonymize how)
{
	struct anonymous *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->how = how;
	for (int i = 0; i < SORTS; i++) {
		a->names[i] = intern_new();
		if (!a->names[i]) {
			anonymous_free(a);
			return NULL;
		}
	}
	return a;
}

void anonymous_free(struct anonymous *a)
{
	if (!a)
		return;
	for (int i = 0; i < SORTS; i++) {
		intern_free(a->names[i]);
		vec_for_each (&a->text[i], t)
			free(*t);
		vec_free(&a->text[i]);
	}
	free(a->executable);
	free(a->hidden);
	free(a);
}

static const char *base(const char *path)
{
	return path ? path_base(path) : NULL;
}

/* Return: "fn_7" for the seventh function; NULL for NULL, and when out of memory. */
static const char *number(struct anonymous *a, enum sort sort, const char *name)
{
	static const char *const prefix[] = {"fn", "src", "lib", "thread", "mark"};
	bool fresh;
	uint32_t id;
	char *text;

	if (!name)
		return NULL;
	id = intern_text(a->names[sort], name, &fresh);
	if (fresh) {
		if (asprintf(&text, "%s_%u", prefix[sort], id) < 0)
			return NULL;
		if (vec_push(&a->text[sort], text)) {
			free(text);
			return NULL;
		}
	}
	return id && id <= a->text[sort].n ? a->text[sort].at[id - 1] : NULL;
}

void anonymous_info(struct anonymous *a, struct mp_info *info)
{
	if (a->how == ANONYMIZE_NONE)
		return;
	a->executable = strdup(info->executable ? info->executable : "");
	a->hidden = strdup(
	    a->how == ANONYMIZE_FULL ? "program" : base(info->executable ? info->executable : ""));
	info->executable = a->hidden;
	info->cmdline = a->hidden;
	info->called[0] = 0;
	if (a->how == ANONYMIZE_FULL)
		info->pid = 0;
}

static const char *file(struct anonymous *a, const char *path)
{
	if (a->executable && path && !strcmp(path, a->executable))
		return a->hidden;
	return a->how == ANONYMIZE_FULL ? number(a, LIBRARY, path ? path : "?") : base(path);
}

static int module(struct anonymous *a, struct mp_module *m)
{
	m->path = file(a, m->path);
	if (a->how == ANONYMIZE_FULL) {
		m->build_id_len = 0;
		memset(m->build_id, 0, sizeof(m->build_id));
	}
	return m->path ? 0 : -ENOMEM;
}

static int symbols(struct anonymous *a, struct mpf_item *it, struct mp_symbol *out)
{
	for (uint32_t i = 0; i < it->symbols.n; i++) {
		out[i] = it->symbols.at[i];
		if (a->how == ANONYMIZE_PARTIAL) {
			out[i].source = base(out[i].source);
			continue;
		}
		out[i].function = number(a, FUNCTION, out[i].function);
		out[i].raw_function = out[i].function;
		out[i].source = number(a, SOURCE, out[i].source);
		if (!out[i].function && it->symbols.at[i].function)
			return -ENOMEM;
	}
	it->symbols.at = out;
	return 0;
}

int anonymous_item(struct anonymous *a, struct mpf_item *it, struct mp_symbol *out)
{
	if (a->how == ANONYMIZE_NONE)
		return 0;
	switch (it->kind) {
	case MPF_MODULE:
		return module(a, &it->module);
	case MPF_PROCESS:
		it->process.executable = it->process.cmdline = file(a, it->process.executable);
		if (a->how == ANONYMIZE_FULL)
			it->process.pid = 0;
		return it->process.executable ? 0 : -ENOMEM;
	case MPF_MAP_USAGE:
		/* "[heap]" and the like are not file names. */
		if (it->map_usage.path && it->map_usage.path[0] == '/')
			it->map_usage.path = file(a, it->map_usage.path);
		return 0;
	case MPF_SYMBOLS:
		return symbols(a, it, out);
	case MPF_HOOK:
		/* The names of the allocator's functions are public. */
		if (a->how == ANONYMIZE_FULL)
			it->hook.module = number(a, LIBRARY, it->hook.module);
		return 0;
	case MPF_THREAD:
		if (a->how == ANONYMIZE_FULL)
			it->thread.name = number(a, THREAD, it->thread.name);
		return 0;
	case MPF_MARK:
		if (a->how == ANONYMIZE_FULL)
			it->mark.name = number(a, MARK, it->mark.name);
		return 0;
	default:
		return 0;
	}
}
