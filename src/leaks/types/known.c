/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>
#include "lib/suppressions.h"

#define MAX_BASELINE (1ull << 30)

static void suppress(struct clusters *c, const struct stack_names *names, const char *pattern)
{
	vec_for_each (&c->list, it) {
		if (suppression_matches(pattern, it->type) ||
		    (it->owner && suppression_matches(pattern, it->owner)) ||
		    (names && it->source.stack &&
		     names->any(names->ctx, it->source.stack, suppression_matches, pattern)))
			it->suppressed = true;
	}
}

int clusters_suppress(struct clusters *c, const char *file, const struct stack_names *names,
		      struct mp_err *err)
{
	struct suppressions s = {0};
	int ret = suppressions_read(&s, file, err);

	for (size_t i = 0; i < s.pattern.n && !ret; i++)
		suppress(c, names, s.pattern.at[i]);
	suppressions_free(&s);
	return ret;
}

static char *slurp(const char *file)
{
	FILE *f = fopen(file, "re");
	char *text = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && (unsigned long)n < MAX_BASELINE &&
	    !fseek(f, 0, SEEK_SET) && (text = malloc((size_t)n + 1))) {
		size_t got = fread(text, 1, (size_t)n, f);

		text[got] = 0;
	}
	fclose(f);
	return text;
}

static void take_off(struct clusters *c, yajl_val old)
{
	static const char *type_path[] = {"type", NULL}, *owner_path[] = {"owner", NULL},
			  *size_path[] = {"size", NULL}, *count_path[] = {"count", NULL};
	const char *type = YAJL_GET_STRING(yajl_tree_get(old, type_path, yajl_t_string));
	const char *owner = YAJL_GET_STRING(yajl_tree_get(old, owner_path, yajl_t_string));
	yajl_val size = yajl_tree_get(old, size_path, yajl_t_number);
	yajl_val count = yajl_tree_get(old, count_path, yajl_t_number);

	uint64_t left;

	if (!type || !YAJL_IS_INTEGER(size) || !YAJL_IS_INTEGER(count))
		return;
	left = (uint64_t)YAJL_GET_INTEGER(count);
	for (int recorded = 0; recorded < 2; recorded++) {
		vec_for_each (&c->list, it) {
			uint64_t fresh = it->count - it->known_count,
				 n = fresh < left ? fresh : left;

			if (it->source.known != recorded ||
			    it->size != (uint64_t)YAJL_GET_INTEGER(size) ||
			    strcmp(it->type, type) != 0 || !it->owner != !owner ||
			    (owner && strcmp(it->owner, owner) != 0))
				continue;
			it->known_count += n;
			left -= n;
		}
	}
}

int clusters_baseline(struct clusters *c, const char *file, struct mp_err *err)
{
	static const char *clusters_path[] = {"clusters", NULL};
	char why[200] = "", *text = slurp(file);
	yajl_val tree, list;

	if (!text)
		return mp_fail(err, MP_EXIT_USAGE, -ENOENT, "cannot read %s", file);
	tree = yajl_tree_parse(text, why, sizeof(why));
	free(text);
	list = tree ? yajl_tree_get(tree, clusters_path, yajl_t_array) : NULL;
	if (!list || !YAJL_IS_ARRAY(list)) {
		yajl_tree_free(tree);
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s is not a report of memprof leaks --json", file);
	}
	for (size_t i = 0; i < list->u.array.len; i++)
		take_off(c, list->u.array.values[i]);
	yajl_tree_free(tree);
	return 0;
}
