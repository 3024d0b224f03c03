/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/annotate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/human.h"
#include "lib/intern.h"
#include "lib/printable.h"
#include "lib/vec.h"
#include "model/model.h"
#include "unwind/symbols/symbols.h"

#define TAB	   8u
#define NOT_MEANT  UINT32_MAX
#define NO_STACK   UINT32_MAX
#define MAX_COLUMN 24

struct line {
	uint32_t file, line;
	uint64_t live, allocated, temporary; /* bytes of stacks whose site it is */
	uint64_t through;		     /* cost of all stacks with a frame of it */
	uint32_t seen;			     /* the latest of these stacks */
};

struct annotation {
	struct model *m;
	const char *wanted;
	const struct source_prefixes *prefixes;
	enum cost cost;
	struct intern *files, *keys;
	VEC(const char *) file; /* [id in files - 1]: path */
	VEC(uint64_t) address;	/* [id in files - 1]: of some code of it */
	VEC(struct line) lines; /* [id in keys - 1] */
	VEC(uint32_t) of_frame; /* [shown_frame.number]: 0: not known; NOT_MEANT; else line + 1 */
};

/* ------------------------------------------------------------------ sums -- */

/* Return: index of the line + 1, added if it is new; 0 when out of memory. */
static uint32_t line_of(struct annotation *a, const struct frame *f)
{
	struct line fresh = {.line = f->line, .seen = NO_STACK};
	bool is_new;
	uint32_t id = intern_text(a->files, f->source, &is_new);

	if (!id || (is_new && (vec_push(&a->file, f->source) || vec_push(&a->address, f->address))))
		return 0;
	fresh.file = id - 1;
	id = intern_pair(a->keys, fresh.file, f->line, &is_new);
	return id && is_new && vec_push(&a->lines, fresh) ? 0 : id;
}

/* As line_of(), or NOT_MEANT, remembered for each frame. */
static uint32_t known_line(struct annotation *a, const struct shown_frame *f)
{
	if (vec_reach(&a->of_frame, f->number))
		return 0;
	if (!a->of_frame.at[f->number])
		a->of_frame.at[f->number] =
		    f->at.source && f->at.line && source_is(f->at.source, a->wanted, a->prefixes)
			? line_of(a, &f->at)
			: NOT_MEANT;
	return a->of_frame.at[f->number];
}

static int add_stack(struct annotation *a, uint32_t id)
{
	const struct group *g = &a->m->sums.group[id];
	struct shown_stack s;
	int ret = shown_every(a->m, id, &s);

	for (uint32_t i = 0; i < s.n && !ret; i++) {
		uint32_t at = known_line(a, &s.at[i]);
		struct line *l;

		if (at == NOT_MEANT)
			continue;
		if (!at || !a->lines.at)
			return -ENOMEM;
		l = &a->lines.at[at - 1];
		if (l->seen != id)
			l->through += group_cost(g, a->cost);
		l->seen = id;
		if (i != s.site)
			continue;
		l->live += g->live_bytes;
		l->allocated += g->allocated_bytes;
		l->temporary += g->temporary_bytes;
	}
	return ret;
}

static int by_line(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* ------------------------------------------------------------------ age -- */

/* Is the file of @mod the one that was recorded?  Return: true with *@changed set. */
static bool program_changed(const struct mp_module *mod, time_t *changed)
{
	struct stat st;
	bool right;
	int fd;

	if (!mod || !mod->path || mod->path[0] != '/')
		return false;
	fd = open(mod->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return false;
	right = !fstat(fd, &st) && S_ISREG(st.st_mode) && symbols_right_file(fd, mod);
	close(fd);
	if (right)
		*changed = st.st_mtime;
	return right;
}

/* Says if the lines can have moved since the program was built. */
static void write_age(const struct annotation *a, uint32_t file, time_t changed, FILE *out)
{
	const struct mp_module *mod = model_module(a->m, a->address.at[file]);
	time_t built, recorded = (time_t)(a->m->info.start_unix_ns / 1000000000u);

	if (program_changed(mod, &built)) {
		if (changed > built)
			fprintf(out,
				"WARNING: this file is newer than %s: its lines can have moved\n",
				printable(mod->path));
	} else if (changed > recorded) {
		fputs("WARNING: this file was changed after the recording: its lines can have "
		      "moved\n",
		      out);
	}
}

/* ------------------------------------------------------------------ writing -- */

static const char *column(uint64_t v, char buf[MAX_COLUMN])
{
	*buf = 0;
	return v ? human_bytes(v, buf) : buf;
}

static void write_sums(const struct line *l, uint32_t number, FILE *out)
{
	static const struct line none;
	const struct line *at = l ? l : &none;
	char a[MAX_COLUMN], b[MAX_COLUMN], c[MAX_COLUMN], d[MAX_COLUMN];

	fprintf(out, "%10s %10s %10s %10s %6u", column(at->live, a), column(at->allocated, b),
		column(at->temporary, c), column(at->through, d), number);
}

static void write_source(char *text, FILE *out)
{
	size_t at = 0;
	char *part;

	text[strcspn(text, "\r\n")] = 0;
	fputs("  ", out);
	while ((part = strsep(&text, "\t"))) {
		at += strlen(part);
		fputs(printable(part), out);
		if (text) {
			fprintf(out, "%*s", (int)(TAB - at % TAB), "");
			at += TAB - at % TAB;
		}
	}
}

/* Writes the whole file.  Return: the first entry that is behind its end. */
static const struct line *write_file(const struct line *l, const struct line *end, FILE *source,
				     FILE *out)
{
	uint32_t number = 0;
	char *text = NULL;
	size_t room = 0;

	while (getline(&text, &room, source) >= 0) {
		bool here = ++number && l < end && l->line == number;

		write_sums(here ? l : NULL, number, out);
		write_source(text, out);
		putc('\n', out);
		l += here;
	}
	free(text);
	return l;
}

/* Writes the lines from @l on, which are of one file. */
static void write_one(struct annotation *a, const struct line *l, const struct line *end, FILE *out)
{
	const char *recorded = a->file.at[l->file];
	char *path = NULL;
	time_t changed;
	FILE *source = source_open(recorded, a->wanted, a->prefixes, &path, &changed);

	fprintf(out, "%s", printable(recorded));
	if (source && strcmp(path, recorded) != 0)
		fprintf(out, " (read from %s)", printable(path));
	putc('\n', out);
	if (source)
		write_age(a, l->file, changed, out);
	else
		fputs("WARNING: this file cannot be read here: --source-prefix OLD=NEW or DIR says "
		      "where it is\n",
		      out);
	fprintf(out, "%10s %10s %10s %10s %6s\n", "live", "allocated", "temporary", "through",
		"line");
	if (source)
		l = write_file(l, end, source, out);
	for (; l < end; l++) {
		write_sums(l, l->line, out);
		fputs(source ? "  (the file has no such line)\n" : "\n", out);
	}
	if (source)
		fclose(source);
	free(path);
}

static int write_all(struct annotation *a, FILE *out, struct mp_err *err)
{
	const struct line *end = vec_end(&a->lines), *next;

	if (!a->lines.n)
		return mp_fail(err, MP_EXIT_USAGE, -ENOENT,
			       "--annotate: no stack has a line of a file '%.200s'", a->wanted);
	vec_sort(&a->lines, by_line);
	fprintf(out,
		"live, allocated, temporary: bytes of the allocations that the line makes; "
		"through: %s, also by what it calls\n",
		cost_text(a->cost));
	for (const struct line *l = a->lines.at; l < end; l = next) {
		for (next = l; next < end && next->file == l->file;)
			next++;
		putc('\n', out);
		write_one(a, l, next, out);
	}
	return 0;
}

int annotate_write(struct model *m, const char *wanted, const struct source_prefixes *p,
		   enum cost cost, FILE *out, struct mp_err *err)
{
	struct annotation a = {.m = m,
			       .wanted = wanted,
			       .prefixes = p,
			       .cost = cost,
			       .files = intern_new(),
			       .keys = intern_new()};
	int ret = a.files && a.keys ? 0 : -ENOMEM;

	for (uint32_t id = 0; !ret && id < m->stacks.n; id++) {
		const struct group *g = &m->sums.group[id];

		if (g->allocations || g->live_blocks || group_cost(g, cost))
			ret = add_stack(&a, id);
	}
	ret = ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory") : write_all(&a, out, err);
	intern_free(a.files);
	intern_free(a.keys);
	vec_free(&a.file);
	vec_free(&a.address);
	vec_free(&a.lines);
	vec_free(&a.of_frame);
	return ret;
}
