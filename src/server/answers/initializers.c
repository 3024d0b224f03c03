/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/initializers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"

/* distcc compiles in a folder of its own, below which is the path of the source. */
static const char *without_distcc(const char *path)
{
	const char *at = strstr(path, "/distccd_"), *rest = at ? strchr(at + 1, '/') : NULL;

	return rest ? rest : path;
}

static const char *symbol_of(const struct frame *f)
{
	return f->raw_function ? f->raw_function : f->function;
}

static bool is_initializer(const struct frame *f)
{
	return strstr(symbol_of(f), "__static_initialization_and_destruction_0");
}

/* Return: whether the stack has an initializer; then @found is set to the innermost one. */
static bool find_initializer(struct model *m, const struct model_stack *s, struct frame *found)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(m, m->stacks.pc.at[s->first + i], f, MAX_INLINED);

		for (uint32_t k = 0; k < n; k++) {
			if (is_initializer(&f[k])) {
				*found = f[k];
				return true;
			}
		}
	}
	return false;
}

static int add_stack(struct model *m, uint32_t id, bool constants, struct initializers *i)
{
	const struct group *g = &m->sums.group[id];
	struct initializer_line line = {
	    .file = "?", .count = g->live_blocks, .size = g->live_usable};
	struct frame f;

	if (!g->live_blocks || !find_initializer(m, &m->stacks.at[id], &f) ||
	    (strstr(symbol_of(&f), ".constprop") != NULL) != constants)
		return 0;
	if (f.source) {
		line.file = without_distcc(f.source);
		line.line = f.line;
	}
	return vec_push(&i->lines, line);
}

static int by_place(const void *a, const void *b)
{
	const struct initializer_line *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	if (order)
		return order;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* Joins what has the same file and line. */
static void join_lines(struct initializers *i)
{
	size_t n = 0;

	vec_sort(&i->lines, by_place);
	vec_for_each (&i->lines, line) {
		struct initializer_line *last = n ? &i->lines.at[n - 1] : NULL;

		if (last && !by_place(last, line)) {
			last->count += line->count;
			last->size += line->size;
		} else {
			i->lines.at[n++] = *line;
		}
	}
	i->lines.n = n;
}

static int largest_first(const void *a, const void *b)
{
	const struct initializer_file *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strcmp(x->file, y->file);
}

static int add_files(struct initializers *i)
{
	struct initializer_file *last = NULL;

	for (size_t k = 0; k < i->lines.n; k++) {
		const struct initializer_line *line = &i->lines.at[k];

		if (!last || strcmp(last->file, line->file) != 0) {
			if (vec_push(&i->files,
				     ((struct initializer_file){.file = line->file, .first = k})))
				return -ENOMEM;
			last = &i->files.at[i->files.n - 1];
		}
		last->n++;
		last->count += line->count;
		last->size += line->size;
		i->count += line->count;
		i->size += line->size;
	}
	vec_sort(&i->files, largest_first);
	return 0;
}

int initializers_find(struct model *m, bool constants, struct initializers *i)
{
	*i = (struct initializers){0};
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		if (add_stack(m, id, constants, i))
			return -ENOMEM;
	}
	join_lines(i);
	return add_files(i);
}

void initializers_free(struct initializers *i)
{
	vec_free(&i->lines);
	vec_free(&i->files);
}
