/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"
#include "model/names/names.h"

#define MAX_STACKS (1u << 28)

/* ------------------------------------------------------------------ events -- */

static void on_map(struct model *m, const struct mp_event *ev)
{
	struct group *g = &m->sums.group[ev->stack < m->stacks.n ? ev->stack : 0];

	if (ev->kind == EV_UNMAP)
		m->facts.unmaps++;
	if (ev->kind != EV_MAP)
		return;
	if (ev->flags & EV_F_INNER) {
		m->facts.inner_maps++;
		return;
	}
	g->maps++;
	g->map_bytes += ev->size;
	m->facts.mapped_bytes += ev->size;
}

static int add_map_usage(struct model *m, const struct mp_map_usage *u)
{
	struct mp_map_usage own = *u;
	char *path = strdup(u->path ? u->path : "");

	own.path = path;
	if (path && !vec_push(&m->facts.map_usage, own))
		return 0;
	free(path);
	return -ENOMEM;
}

static int on_mallopt(struct model *m, const struct mp_event *ev)
{
	struct model_mallopt opt = {.time_ns = ev->time_ns,
				    .tid = ev->tid,
				    .stack = ev->stack,
				    .param = (int32_t)ev->size,
				    .value = (int32_t)ev->usable,
				    .result = ev->fd};

	return vec_push(&m->facts.mallopts, opt);
}

static void on_call(struct model *m, const struct mp_event *ev)
{
	struct model_hook *h;

	if (ev->hook >= m->facts.hooks.n || ev->flags & EV_F_CARRIED)
		return;
	h = &m->facts.hooks.at[ev->hook];
	if (ev->kind == EV_ALLOC || ev->kind == EV_FREE || ev->kind == EV_REALLOC_BEGIN ||
	    ev->kind == EV_MAP || ev->kind == EV_UNMAP || ev->kind == EV_REMAP_BEGIN ||
	    ev->kind == EV_MALLOPT)
		h->calls += 1ull << ev->weight;
	if ((ev->kind == EV_ALLOC || ev->kind == EV_REALLOC_END) &&
	    (ev->usable != ev->size || ev->flags & (EV_F_NON_MAIN | EV_F_MMAPPED)))
		h->has_chunks = true;
}

int facts_event(struct model *m, const struct mp_event *ev)
{
	if (ev->time_ns > m->facts.end_ns)
		m->facts.end_ns = ev->time_ns;
	if (!tasks_thread(&m->tasks, ev->tid))
		return -ENOMEM;
	on_call(m, ev);
	if (ev->kind >= EV_MAP)
		on_map(m, ev);
	if (ev->kind == EV_MALLOPT && on_mallopt(m, ev))
		return -ENOMEM;
	return 0;
}

/* ------------------------------------------------------------------ items -- */

static int add_stack(struct model *m, const struct mpf_item *it)
{
	struct model_stack s = {m->stacks.pc.n, it->stack.n, it->stack.flags};

	if (it->stack.id >= MAX_STACKS)
		return -EINVAL;
	if (it->stack.id >= m->stacks.n) {
		uint32_t n = it->stack.id < 512 ? 1024 : it->stack.id * 2;
		struct group *g = reallocarray(m->sums.group, n, sizeof(*g));
		struct model_stack *st;

		if (!g)
			return -ENOMEM;
		m->sums.group = g;
		st = reallocarray(m->stacks.at, n, sizeof(*st));
		if (!st)
			return -ENOMEM;
		m->stacks.at = st;
		memset(g + m->stacks.n, 0, (n - m->stacks.n) * sizeof(*g));
		memset(st + m->stacks.n, 0, (n - m->stacks.n) * sizeof(*st));
		m->stacks.n = n;
	}
	for (uint32_t i = 0; i < it->stack.n; i++) {
		if (vec_push(&m->stacks.pc, it->stack.pc[i]))
			return -ENOMEM;
	}
	m->stacks.at[it->stack.id] = s;
	return 0;
}

static char *copy_string(const char *s)
{
	return strdup(s ? s : "?");
}

static int add_mark(struct model *m, uint64_t time_ns, const char *name)
{
	struct mark mark = {time_ns, copy_string(name)};

	if (mark.name && !vec_push(&m->facts.marks, mark))
		return 0;
	free(mark.name);
	return -ENOMEM;
}

static int add_hook(struct model *m, const struct mp_hook_info *info)
{
	struct model_hook h = {.name = copy_string(info->name),
			       .module = copy_string(info->module),
			       .kind = info->kind};

	if (h.name && h.module && !vec_push(&m->facts.hooks, h))
		return 0;
	free(h.name);
	free(h.module);
	return -ENOMEM;
}

static int add_module(struct model *m, const struct mp_module *module)
{
	struct mp_module mod = *module;
	char *path = copy_string(module->path);

	mod.path = path;
	if (path && !vec_push(&m->facts.modules, mod))
		return 0;
	free(path);
	return -ENOMEM;
}

static int name_thread(struct model *m, uint32_t tid, const char *name)
{
	struct model_thread *t = tasks_thread(&m->tasks, tid);

	if (t && !t->name)
		t->name = copy_string(name);
	return t && t->name ? 0 : -ENOMEM;
}

static int add_process(struct model *m, const struct mp_process *process)
{
	struct model_process p = {.of = *process};
	char *executable, *cmdline;

	if (process->number != m->tasks.processes.n)
		return -EINVAL;
	executable = copy_string(process->executable);
	cmdline = copy_string(process->cmdline);
	p.of.executable = executable;
	p.of.cmdline = cmdline;
	if (executable && cmdline && !vec_push(&m->tasks.processes, p))
		return 0;
	free(executable);
	free(cmdline);
	return -ENOMEM;
}

int facts_item(struct model *m, const struct mpf_item *it)
{
	switch (it->kind) {
	case MPF_HOOK:
		return add_hook(m, &it->hook);
	case MPF_PROCESS:
		return add_process(m, &it->process);
	case MPF_MODULE:
		return add_module(m, &it->module);
	case MPF_THREAD:
		return name_thread(m, it->thread.tid, it->thread.name);
	case MPF_STACK:
		return add_stack(m, it);
	case MPF_SAMPLE:
		return vec_push(&m->facts.samples, it->sample);
	case MPF_LOSSES:
		m->facts.losses = it->losses;
		return 0;
	case MPF_SYMBOLS:
		return names_add(m->naming.names, it->symbols.pc, it->symbols.at, it->symbols.n);
	case MPF_MAP_USAGE:
		return add_map_usage(m, &it->map_usage);
	case MPF_MARK:
		return add_mark(m, it->mark.time_ns, it->mark.name);
	case MPF_FINISH:
		m->facts.finish = it->finish;
		m->facts.has_finish = true;
		return 0;
	case MPF_CULLED:
		m->facts.culled_events += mp_culled_events(&it->culled);
		if (it->culled.last_ns > m->facts.end_ns)
			m->facts.end_ns = it->culled.last_ns;
		if (it->culled.hook < m->facts.hooks.n)
			m->facts.hooks.at[it->culled.hook].calls += mp_culled_count(&it->culled);
		if (it->culled.free_hook < m->facts.hooks.n)
			m->facts.hooks.at[it->culled.free_hook].calls +=
			    mp_culled_count(&it->culled);
		return 0;
	default:
		return 0;
	}
}

void facts_free(struct facts *f)
{
	vec_for_each (&f->hooks, h) {
		free(h->name);
		free(h->module);
	}
	vec_for_each (&f->modules, mod)
		free((char *)mod->path);
	vec_for_each (&f->marks, mark)
		free(mark->name);
	vec_for_each (&f->map_usage, u)
		free((char *)u->path);
	vec_free(&f->hooks);
	vec_free(&f->modules);
	vec_free(&f->marks);
	vec_free(&f->map_usage);
	vec_free(&f->samples);
	vec_free(&f->mallopts);
}

const char *map_usage_name(const struct mp_map_usage *u)
{
	return u->path && *u->path ? u->path : "[anonymous]";
}

/* The names are those of glibc's malloc.h. */
const char *mallopt_name(int32_t param)
{
	static const char *const names[] = {
	    "M_TRIM_THRESHOLD", "M_TOP_PAD", "M_MMAP_THRESHOLD", "M_MMAP_MAX",
	    "M_CHECK_ACTION",	"M_PERTURB", "M_ARENA_TEST",	 "M_ARENA_MAX"};

	if (param == 1)
		return "M_MXFAST";
	return param <= -1 && param >= -8 ? names[-1 - param] : NULL;
}
