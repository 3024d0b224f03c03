/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/code_history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inject/block/module.h"

#define UNKNOWN	     0xfffull /* the number of all code at a place that has seen more */
#define GENERATED    0xffeull /* the number of generated code where a file was mapped before */
#define UNKNOWN_PATH "[unknown code]"
#define ANY_INO	     UINT64_MAX /* of a file that another recorder has seen */

void code_history_free(struct code_history *h)
{
	texts_free(&h->paths);
	vec_free(&h->entries);
	vec_free(&h->changes);
	vec_free(&h->forget);
}

/* ----------------------------------------------------------------------- places -- */

/* In the process, @e and @m have an address in common. */
static bool overlaps(const struct code_entry *e, const struct mp_module *m)
{
	return e->m.start - e->add < m->end && m->start < e->m.end - e->add;
}

static bool same_range(const struct code_entry *e, const struct mp_module *m)
{
	return e->m.start - e->add == m->start && e->m.end - e->add == m->end;
}

/* Are both parts of the same file, which begins at the same address? */
static bool same_code(const struct code_entry *e, const struct mp_module *m, uint64_t ino)
{
	if (e->m.start - e->add - e->m.file_offset != m->start - m->file_offset)
		return false;
	if (e->m.build_id_len && m->build_id_len)
		return e->m.build_id_len == m->build_id_len &&
		       !memcmp(e->m.build_id, m->build_id, m->build_id_len);
	if (strcmp(e->m.path, m->path) != 0)
		return false;
	return e->m.build_id_len || m->build_id_len || e->ino == ino || e->ino == ANY_INO;
}

static bool is_known(const struct code_entry *e, const struct mp_module *m, uint64_t ino)
{
	return same_range(e, m) && !e->ino == !ino &&
	       (ino ? same_code(e, m, ino) : !strcmp(e->m.path, m->path));
}

/* Return: @ino, or 0 if the file is no ELF file: programs also generate code in files without a name. */
static uint64_t ino_of_code(const struct mp_module *m, uint64_t ino)
{
	return m->build_id_len || m->bias ? ino : 0;
}

/* Return: the new entry, or NULL. */
static struct code_entry *add_entry(struct code_history *h, const struct mp_module *m, uint64_t ino,
				    uint64_t number)
{
	struct code_entry e = {.m = *m, .ino = ino, .add = number << MP_NUMBER_SHIFT};

	e.m.start += e.add;
	e.m.end += e.add;
	e.m.bias += e.add;
	e.m.path = texts_keep(&h->paths, m->path ? m->path : "");
	if (!e.m.path || vec_push(&h->entries, e))
		return NULL;
	return &h->entries.at[h->entries.n - 1];
}

/* The number of code that is not known yet. */
static uint64_t number_at(const struct code_history *h, const struct mp_module *m, uint64_t ino)
{
	uint64_t number = 0;

	if (m->end >> MP_NUMBER_SHIFT)
		return 0;
	vec_for_each (&h->entries, e) {
		uint64_t its = e->add >> MP_NUMBER_SHIFT;

		if (!e->ino || !overlaps(e, m))
			continue;
		if (!ino)
			return GENERATED;
		if (same_code(e, m, ino))
			return its;
		if (number <= its)
			number = its + 1;
	}
	return number < GENERATED ? number : UNKNOWN;
}

/* Return: the entry for all code at the place of @m that has no number of its own, or NULL. */
static struct code_entry *unknown_at(struct code_history *h, const struct mp_module *m)
{
	const struct mp_module any = {
	    .start = m->start, .end = m->end, .bias = m->start, .path = UNKNOWN_PATH};

	vec_for_each (&h->entries, e) {
		if (e->add >> MP_NUMBER_SHIFT == UNKNOWN && same_range(e, m))
			return e;
	}
	return add_entry(h, &any, 0, UNKNOWN);
}

/* Return: the entry of code at its place in the process, new or known, or NULL. */
static struct code_entry *find_or_add(struct code_history *h, const struct mp_module *m,
				      uint64_t ino)
{
	uint64_t number;

	vec_for_each (&h->entries, e) {
		if (is_known(e, m, ino))
			return e;
	}
	number = number_at(h, m, ino);
	return number == UNKNOWN ? unknown_at(h, m) : add_entry(h, m, ino, number);
}

/* Is other code known at the place of @e?  @in_tables: is it also in the tables? */
static bool has_rival(const struct code_history *h, const struct code_entry *e, bool in_tables)
{
	struct mp_module m = e->m;

	m.start -= e->add;
	m.end -= e->add;
	vec_for_each (&h->entries, o) {
		if (o->ino && overlaps(o, &m) && !same_code(o, &m, e->ino) &&
		    (!in_tables || o->in_tables))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------------- changes -- */

static int add_change(struct code_history *h, const struct code_entry *e, uint64_t since_ns,
		      uint64_t doubtful_until_ns)
{
	struct code_change c = {.start = e->m.start - e->add,
				.end = e->m.end - e->add,
				.add = e->add,
				.since_ns = since_ns,
				.doubtful_until_ns = doubtful_until_ns};

	return vec_push(&h->changes, c);
}

static int add_trust(struct code_history *h, const struct code_entry *e, uint64_t since_ns)
{
	int ret = add_change(h, e, since_ns, 0);

	if (!ret)
		h->changes.at[h->changes.n - 1].is_trusted = true;
	return ret;
}

int code_history_continue(struct code_history *h, const struct carry *carry)
{
	vec_for_each (&carry->modules, m) {
		uint64_t number = m->start >> MP_NUMBER_SHIFT;
		struct mp_module own = *m;

		own.start -= number << MP_NUMBER_SHIFT;
		own.end -= number << MP_NUMBER_SHIFT;
		own.bias -= number << MP_NUMBER_SHIFT;
		if (ino_of_code(&own, ANY_INO) && *own.path == '/' &&
		    !add_entry(h, &own, ANY_INO, number))
			return -ENOMEM;
	}
	h->next_module = h->entries.n;
	return 0;
}

/* Return: the path of a file that is not there any more, as in maps, or NULL. */
static const char *keep_path_of_deleted(struct code_history *h, const char *path)
{
	const char *kept = NULL;
	char *text;

	if (asprintf(&text, "%s (deleted)", path) < 0)
		return NULL;
	kept = texts_keep(&h->paths, text);
	free(text);
	return kept;
}

int code_history_mapped(struct code_history *h, pid_t pid, const struct sideband_code *code,
			bool replaced)
{
	struct code_entry *e;
	struct mp_module m;
	bool stale;

	if (!module_describe(pid, &code->map, code->time_ns, replaced, &m) && m.bias)
		m.path = keep_path_of_deleted(h, m.path);
	if (!m.path)
		return -ENOMEM;
	if (!ino_of_code(&m, code->map.ino))
		return 0; /* the next update notes it, if it is still mapped */
	e = find_or_add(h, &m, code->map.ino);
	if (!e)
		return -ENOMEM;
	if (!has_rival(h, e, false))
		return 0;
	h->replaced_ns = code->time_ns;
	e->announced = !e->in_tables;
	stale = has_rival(h, e, true);
	h->is_stale |= stale;
	if (stale && vec_push(&h->forget, m.start))
		return -ENOMEM;
	return add_change(h, e, code->time_ns, stale ? UINT64_MAX : 0);
}

/* Notes code that is new in the tables. */
static int note_new(struct code_history *h, struct code_entry *e, const struct code_look_times *t)
{
	const struct code_entry own = *e;

	e->announced = false;
	if (!has_rival(h, &own, false))
		return 0;
	if (own.announced)
		return add_trust(h, &own, t->published_ns);
	return add_change(h, &own, t->read_ns, has_rival(h, &own, true) ? t->published_ns : 0);
}

/* Forgets generated code that is not mapped any more: a program can generate any amount. */
static void forget_unmapped(struct code_history *h)
{
	size_t keep = 0, written = 0;

	for (size_t i = 0; i < h->entries.n; i++) {
		const struct code_entry *e = &h->entries.at[i];

		if (!e->in_tables && !e->ino && *e->m.path != '[' && i < h->next_module)
			continue;
		written += i < h->next_module;
		h->entries.at[keep++] = *e;
	}
	h->entries.n = keep;
	h->next_module = written;
}

int code_history_update(struct code_history *h, const struct tables *tb,
			const struct code_look_times *t)
{
	VEC(size_t) current = {0};
	int ret = 0;

	vec_for_each (&tb->code, c) {
		struct code_entry *e = find_or_add(h, &c->m, ino_of_code(&c->m, c->ino));
		size_t index = e ? (size_t)(e - h->entries.at) : 0;

		ret = e ? vec_push(&current, index) : -ENOMEM;
		if (!ret && !e->in_tables)
			ret = note_new(h, e, t);
		if (ret)
			break;
	}
	if (!ret) {
		vec_for_each (&h->entries, e)
			e->in_tables = false;
		vec_for_each (&current, index)
			h->entries.at[*index].in_tables = true;
		forget_unmapped(h);
		h->is_stale = false;
	}
	vec_free(&current);
	return ret;
}

bool code_history_next_module(struct code_history *h, struct mp_module *m)
{
	if (h->next_module == h->entries.n)
		return false;
	*m = h->entries.at[h->next_module++].m;
	return true;
}

bool code_history_next_change(struct code_history *h, struct code_change *c)
{
	if (h->next_change == h->changes.n) {
		h->next_change = h->changes.n = 0;
		return false;
	}
	*c = h->changes.at[h->next_change++];
	return true;
}
