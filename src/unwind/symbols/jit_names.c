/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/jit_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/by_number.h"
#include "unwind/symbols/jit_name.h"

#define MAX_BYTES (64u << 20) /* of names */
#define MAX_WORK  (16u << 20) /* addresses that are named, and lines, counting each time */
#define MAX_SHOWN 4	      /* names of one address; then "..." */

struct meaning {
	struct meaning *older;
	size_t bytes;
	struct mp_symbol symbol;
	char text[];
};

struct entry {
	uint64_t address;
	struct meaning *newest;
	char *joined;	 /* several names as one; NULL: not needed yet */
	uint8_t count;	 /* of meanings */
	bool incomplete; /* there were more */
};

struct jit_names {
	struct entry *at; /* by address */
	size_t n;
	uint64_t bytes, work;
	bool incomplete; /* as for each entry */
};

struct jit_names *jit_names_new(const uint64_t *addresses, size_t n)
{
	struct jit_names *j = calloc(1, sizeof(*j));
	uint64_t *sorted = malloc((n + 1) * sizeof(*sorted));

	if (j)
		j->at = calloc(n + 1, sizeof(*j->at));
	if (!j || !sorted || !j->at) {
		free(sorted);
		jit_names_free(j);
		return NULL;
	}
	if (n)
		memcpy(sorted, addresses, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_number);
	for (size_t i = 0; i < n; i++) {
		if (!j->n || j->at[j->n - 1].address != sorted[i])
			j->at[j->n++].address = sorted[i];
	}
	free(sorted);
	return j;
}

static void forget(struct jit_names *j, struct entry *e)
{
	while (e->newest) {
		struct meaning *m = e->newest;

		e->newest = m->older;
		j->bytes -= m->bytes;
		free(m);
	}
	e->count = 0;
	e->incomplete = false;
}

void jit_names_free(struct jit_names *j)
{
	for (size_t i = 0; j && i < j->n; i++) {
		forget(j, &j->at[i]);
		free(j->at[i].joined);
	}
	if (j)
		free(j->at);
	free(j);
}

/* Return: the first entry that is not below @address. */
static size_t lower_bound(const struct jit_names *j, uint64_t address)
{
	size_t low = 0, high = j->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (j->at[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool jit_names_wants(const struct jit_names *j, uint64_t start, uint64_t size)
{
	size_t i = lower_bound(j, start);

	return i < j->n && j->at[i].address - start < size;
}

/* Return: the line of @address, or NULL. */
static const struct jit_line *line_of(const struct jit_code *code, uint64_t address)
{
	const struct jit_line *best = NULL;

	for (size_t i = 0; i < code->lines; i++) {
		if (code->line[i].address <= address &&
		    (!best || code->line[i].address >= best->address))
			best = &code->line[i];
	}
	return best;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Return: what @code says of @address, or NULL if out of memory. */
static struct meaning *meaning_of(const struct jit_code *code, uint64_t address)
{
	const struct jit_line *line = line_of(code, address);
	size_t name = strlen(code->name), source = line ? strlen(line->source) + 1 : 0;
	size_t n = 2 * name + 1 + JIT_NAME_MORE + source;
	struct meaning *m = calloc(1, sizeof(*m) + n);
	char *buf;

	if (!m)
		return NULL;
	m->bytes = n;
	memcpy(m->text, code->name, name + 1);
	buf = m->text + name + 1;
	jit_name_split(m->text, buf, &m->symbol);
	/* V8 11 writes bytes of freed memory as the source of a line, and the file of an
	 * inlined function is another one. */
	if (line && *line->source &&
	    (!jit_name_is_javascript(m->text) || same_text(line->source, m->symbol.source))) {
		m->symbol.source = memcpy(m->text + n - source, line->source, source);
		m->symbol.line = line->line;
		m->symbol.column = line->column;
	}
	return m;
}

static bool is_known(struct entry *e, const struct meaning *m)
{
	for (struct meaning *k = e->newest; k; k = k->older) {
		if (!same_text(k->symbol.function, m->symbol.function) ||
		    !same_text(k->symbol.source, m->symbol.source))
			continue;
		if (k->symbol.line != m->symbol.line)
			k->symbol.line = 0;
		if (k->symbol.column != m->symbol.column)
			k->symbol.column = 0;
		return true;
	}
	return false;
}

static int put_code(struct jit_names *j, struct entry *e, const struct jit_code *code)
{
	struct meaning *m = meaning_of(code, e->address);

	if (!m)
		return -ENOMEM;
	if (!code->late)
		forget(j, e);
	if (is_known(e, m)) {
		free(m);
		return 0;
	}
	if (e->count == MAX_SHOWN || j->bytes + m->bytes > MAX_BYTES) {
		e->incomplete = true;
		free(m);
		return e->count == MAX_SHOWN ? 0 : -E2BIG;
	}
	j->bytes += m->bytes;
	m->older = e->newest;
	e->newest = m;
	e->count++;
	return 0;
}

int jit_names_put(struct jit_names *j, const struct jit_code *code)
{
	int ret = 0;

	for (size_t i = lower_bound(j, code->start);
	     !ret && i < j->n && j->at[i].address - code->start < code->size; i++)
		ret =
		    (j->work += 1 + code->lines) < MAX_WORK ? put_code(j, &j->at[i], code) : -E2BIG;
	return ret;
}

void jit_names_leave_out(struct jit_names *j)
{
	j->incomplete = true;
}

/* Return: "new | old", or NULL if out of memory. */
static char *join_names(const struct entry *e, bool incomplete)
{
	size_t n = sizeof(" | ...");
	char *text, *to;

	for (const struct meaning *m = e->newest; m; m = m->older)
		n += strlen(m->symbol.function) + 3;
	text = malloc(n);
	if (!text)
		return NULL;
	to = text;
	for (const struct meaning *m = e->newest; m; m = m->older)
		to = stpcpy(stpcpy(to, to == text ? "" : " | "), m->symbol.function);
	if (incomplete)
		strcpy(to, " | ...");
	return text;
}

uint32_t jit_names_find(struct jit_names *j, uint64_t address, struct mp_symbol *out)
{
	size_t i = lower_bound(j, address);
	struct entry *e = &j->at[i];
	bool incomplete;

	if (i == j->n || e->address != address || !e->newest)
		return 0;
	incomplete = j->incomplete || e->incomplete;
	if (e->count == 1 && !incomplete) {
		*out = e->newest->symbol;
		return 1;
	}
	if (!e->joined)
		e->joined = join_names(e, incomplete);
	*out = (struct mp_symbol){.function = e->joined, .raw_function = e->joined};
	return e->joined ? 1 : 0;
}
