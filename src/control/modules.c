/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "attach/procfs.h"
#include "inject/hooks/names.h"

/* Copies the list of modules, which changes while the recording runs.  The paths are not copied:
 * they stay valid. */
static struct mp_module *copy_modules(struct recording *rec, size_t *n)
{
	struct mp_module *copy;

	pthread_mutex_lock(&rec->lock);
	*n = 0;
	copy = calloc(rec->s.tables.code.n + 1, sizeof(*copy));
	for (; copy && *n < rec->s.tables.code.n; (*n)++)
		copy[*n] = rec->s.tables.code.at[*n].m;
	pthread_mutex_unlock(&rec->lock);
	return copy;
}

struct symbols *recording_symbols(struct recording *rec)
{
	struct symbols *symbols = symbols_new(NULL);
	struct mp_module *module;
	char path[4096];
	size_t n;

	if (!symbols)
		return NULL;
	module = copy_modules(rec, &n);
	for (size_t i = 0; i < n; i++) {
		const struct mp_module *m = &module[i];

		/* Prefers the mapped file itself, even if it was deleted or replaced.  If that
		 * cannot be opened, uses the file that has its name in the target's root. */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", proc_of(rec->t->pid),
			 (unsigned long long)m->start, (unsigned long long)m->end);
		if (access(path, R_OK))
			snprintf(path, sizeof(path), "/proc/%d/root%s", proc_of(rec->t->pid),
				 m->path);
		if (symbols_add_module(symbols, m, access(path, R_OK) ? NULL : path))
			continue;
	}
	free(module);
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
	struct mp_module *module;
	size_t n;

	module = copy_modules(ctx, &n);
	for (size_t i = 0; i < n; i++)
		mpf_put_module(w, &module[i]);
	free(module);
}
