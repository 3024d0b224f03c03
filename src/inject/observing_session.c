/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A session that only observes: plan, tables and rings, but no agent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "inject/find.h"
#include "inject/internal.h"
#include "unwind/table_cache.h"

static int open_block(struct session *s, const struct session_options *o)
{
	struct layout layout;
	void *p;

	layout_default(s->t->status.threads, 0, &layout);
	s->layout = layout.control;
	s->length = layout.length;
	p = mmap(NULL, s->length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	s->layout.magic = SS_MAGIC;
	s->layout.version = SS_VERSION;
	s->layout.arch = s->t->arch->elf_machine;
	layout_rings(&s->layout, o->lossless, false);
	s->block = p;
	*s->block = s->layout;
	s->shared = (struct ss_journal *)((char *)p + s->layout.journal);
	s->journal = calloc(1, sizeof(*s->journal));
	return s->journal ? 0 : -ENOMEM;
}

int session_observe_hooks(struct session *s)
{
	while (s->journal->nhooks < s->plan.hooks.n) {
		const struct planned_hook *p = &s->plan.hooks.at[s->journal->nhooks];
		struct ss_journal_hook *h = &s->journal->hook[s->journal->nhooks];

		struct ss_hook_name *name = &s->journal->name[s->journal->nhooks];

		if (s->journal->nhooks == SS_MAX_HOOKS)
			return -ENOSPC;
		h->addr = p->addr;
		h->function_end = p->end;
		h->kind = name->kind = p->kind;
		h->name = s->journal->nhooks;
		snprintf(name->name, sizeof(name->name), "%s", p->name);
		snprintf(name->module, sizeof(name->module), "%s", p->module);
		__atomic_store_n(&s->journal->nnames, h->name + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&s->journal->nhooks, s->journal->nhooks + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

static int refuse_session(pid_t pid, struct mp_err *err)
{
	int ret = session_refuse_recorder(pid, MP_EXIT_ATTACHED, err);

	return ret ? ret
		   : mp_fail(err, MP_EXIT_ATTACHED, -EBUSY,
			     "process %d has a memprof session, and probes do not work on patched "
			     "functions; first: memprof detach -p %d",
			     pid, pid);
}

int session_observe(struct session *s, struct target *t, const struct session_options *options,
		    struct mp_err *err)
{
	uint64_t length;
	struct maps maps;
	int ret;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->observes = true;
	s->no_hooks = options->no_hooks;
	ret = maps_read(t->pid, &maps);
	if (ret)
		return target_refused(t, ret, err);
	if (!s->no_hooks)
		ret = session_find(&maps, &length) ? refuse_session(t->pid, err)
						   : session_plan(s, &maps, err);
	if (!ret) {
		ret = open_block(s, options);
		if (!ret)
			ret = tables_init(&s->tables, s->block, &s->layout);
		if (!ret && options->cache)
			s->tables.cache = unwind_cache_dir(options->cache);
		if (!ret && tables_update(&s->tables, t, &maps) < 0)
			ret = -ENOMEM;
		if (!ret)
			ret = session_observe_hooks(s);
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "cannot build unwind tables: %s",
				strerror(-ret));
	}
	maps_free(&maps);
	return ret;
}
