/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/modules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/procfs.h"
#include "inject/find.h"
#include "inject/hooks/names.h"
#include "lib/deadline.h"

static bool is_replaced(const struct sideband_news *news, const struct sideband_code *code)
{
	for (const struct sideband_code *c = code + 1; c < vec_end(&news->code); c++) {
		if (c->map.start < code->map.end && code->map.start < c->map.end)
			return true;
	}
	return false;
}

/* Reads the side band.  The caller holds rec->code_lock. */
static void poll_sideband(struct recording *rec)
{
	struct sideband_news *news = &rec->news;

	if (!rec->sideband)
		return;
	sideband_poll(rec->sideband, news);
	vec_for_each (&news->code, c) {
		if (!session_is_path(c->map.path) &&
		    code_history_mapped(&rec->code, rec->t->pid, c, is_replaced(news, c)))
			news->lost++;
	}
	sideband_forget_code(news);
}

int recording_note_code(struct recording *rec, uint64_t read_ns)
{
	const struct code_look_times t = {read_ns, mono_ns()};
	int ret;

	pthread_mutex_lock(&rec->code_lock);
	/* What the mappings show was announced before. */
	poll_sideband(rec);
	ret = code_history_update(&rec->code, &rec->s.tables, &t);
	pthread_mutex_unlock(&rec->code_lock);
	return ret;
}

void recording_prepare_tables(struct recording *rec)
{
	pthread_mutex_lock(&rec->code_lock);
	vec_for_each (&rec->code.forget, start)
		tables_forget(&rec->s.tables, *start);
	rec->code.forget.n = 0;
	pthread_mutex_unlock(&rec->code_lock);
}

struct sideband_news recording_news(struct recording *rec)
{
	struct sideband_news news;

	pthread_mutex_lock(&rec->code_lock);
	poll_sideband(rec);
	news = rec->news;
	rec->news = (struct sideband_news){0};
	pthread_mutex_unlock(&rec->code_lock);
	return news;
}

uint64_t recording_code_replaced(struct recording *rec)
{
	uint64_t ns;

	pthread_mutex_lock(&rec->code_lock);
	ns = rec->code.replaced_ns;
	pthread_mutex_unlock(&rec->code_lock);
	return ns;
}

bool recording_code_is_stale(struct recording *rec)
{
	bool is_stale;

	pthread_mutex_lock(&rec->code_lock);
	poll_sideband(rec);
	is_stale = rec->code.is_stale;
	pthread_mutex_unlock(&rec->code_lock);
	return is_stale;
}

bool recording_next_module(void *ctx, struct mp_module *m)
{
	struct recording *rec = ctx;
	bool found;

	pthread_mutex_lock(&rec->code_lock);
	found = code_history_next_module(&rec->code, m);
	pthread_mutex_unlock(&rec->code_lock);
	return found;
}

bool recording_next_change(void *ctx, struct code_change *c)
{
	struct recording *rec = ctx;
	bool found;

	pthread_mutex_lock(&rec->code_lock);
	poll_sideband(rec);
	found = code_history_next_change(&rec->code, c);
	pthread_mutex_unlock(&rec->code_lock);
	return found;
}

struct code_entry *recording_code(struct recording *rec, size_t *n)
{
	struct code_entry *copy;

	pthread_mutex_lock(&rec->code_lock);
	*n = rec->code.entries.n;
	copy = calloc(*n + 1, sizeof(*copy));
	if (!copy)
		*n = 0;
	else if (*n)
		memcpy(copy, rec->code.entries.at, *n * sizeof(*copy));
	pthread_mutex_unlock(&rec->code_lock);
	return copy;
}

/* Return: the file to read the symbols of @e from, in @path or NULL for the one that has its name here; "": none. */
static const char *symbol_file(const struct code_entry *e, pid_t pid, char path[static PATH_MAX])
{
	struct stat st;

	/* Prefers the mapped file itself, even if it was deleted or replaced.  If that cannot be
	 * opened, uses the file that has its name in the target's root. */
	map_files_path(pid, e->m.start - e->add, e->m.end - e->add, path);
	if (e->in_tables && !access(path, R_OK))
		return path;
	snprintf(path, PATH_MAX, "/proc/%d/root%s", proc_of(pid), e->m.path);
	if (access(path, R_OK))
		path = NULL;
	/* The build id shows whether the file is another one now. */
	if (e->in_tables || e->m.build_id_len ||
	    (!stat(path ? path : e->m.path, &st) && st.st_ino == e->ino))
		return path;
	return "";
}

struct symbols *recording_symbols(struct recording *rec)
{
	struct symbols *symbols = symbols_new(NULL);
	struct code_entry *entry;
	char path[PATH_MAX];
	size_t n;

	if (!symbols)
		return NULL;
	entry = recording_code(rec, &n);
	for (size_t i = 0; i < n; i++) {
		if (symbols_add_module(symbols, &entry[i].m,
				       symbol_file(&entry[i], rec->t->pid, path)))
			continue;
	}
	free(entry);
	return symbols;
}

void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n)
{
	struct mp_symbol sym[64];

	for (uint64_t i = 0; i < n && symbols; i++) {
		uint32_t found = symbols_find(symbols, pc[i], sym, 64);
		const char *name;

		pthread_mutex_lock(&rec->lock);
		name = hook_name_at(&rec->s.plan, pc[i]);
		pthread_mutex_unlock(&rec->lock);
		if (name && found)
			sym[found - 1].function = sym[found - 1].raw_function = name;
		if (found && mpf_put_symbols(w, pc[i], sym, found))
			return;
	}
}

void recording_put_modules(void *ctx, struct mpf_writer *w)
{
	struct code_entry *entry;
	size_t n;

	entry = recording_code(ctx, &n);
	for (size_t i = 0; i < n; i++)
		mpf_put_module(w, &entry[i].m);
	free(entry);
}
