/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attach/proc/procfs.h"
#include "lib/bitmap.h"
#include "lib/intern.h"
#include "lib/path.h"

/* Thread-local data is not farther from the thread pointer than this, if no symbol says more. */
#define NEAR_TP (16u << 10)

const char *holder_kind_name(enum holder_kind kind)
{
	static const char *const name[] = {
	    [HOLDER_MODULE] = "module",
	    [HOLDER_VARIABLE] = "variable",
	    [HOLDER_PLACE] = "data",
	    [HOLDER_TLS] = "thread-local variable",
	    [HOLDER_TLS_PLACE] = "thread-local data",
	    [HOLDER_THREAD] = "thread",
	    [HOLDER_FRAME] = "frame",
	    [HOLDER_STACK] = "stack",
	    [HOLDER_REGISTERS] = "registers",
	    [HOLDER_EXITED] = "exited thread",
	    [HOLDER_MAPPINGS] = "mappings",
	    [HOLDER_MAPPING] = "mapping",
	    [HOLDER_CODE] = "code",
	    [HOLDER_KERNEL] = "kernel",
	};

	return name[kind];
}

struct maker {
	struct holders *h;
	struct graph *g;
	struct image *img;
	struct intern *known; /* by address, and kind and thread */
	uint32_t *of_root;    /* by root: holder */
};

/* Adds the holder, if it is new.  Return: its number, or INDEX_NONE when out of memory. */
static uint32_t add_holder(struct maker *m, const struct holder *fresh)
{
	uint64_t key = (uint64_t)fresh->kind << 32 | (uint32_t)fresh->tid;
	bool first;
	uint32_t id = intern_pair(m->known, fresh->addr, key, &first);

	if (!id || (first && vec_push(&m->h->list, *fresh)))
		return INDEX_NONE;
	return id - 1;
}

/* Adds the holder that is the parent of others. */
static uint32_t add_parent(struct maker *m, enum holder_kind kind, uint32_t module, pid_t tid)
{
	const struct holder it = {.kind = kind,
				  .parent = INDEX_NONE,
				  .addr = module,
				  .tid = tid,
				  .module = module,
				  .frame = -1};

	return add_holder(m, &it);
}

static uint32_t add_thread(struct maker *m, pid_t tid)
{
	return add_parent(m, HOLDER_THREAD, UINT32_MAX, tid);
}

/* ------------------------------------------------------------- variables -- */

static uint32_t of_mapping(struct maker *m, const struct root *r, enum holder_kind kind)
{
	const struct image_map *map = r->addr ? image_map_at(m->img, r->addr) : NULL;
	const uint64_t end = modules_end(m->h->modules, modules_at(m->h->modules, r->addr));
	struct holder it = {.kind = kind,
			    .parent = INDEX_NONE,
			    .addr = map ? map->start : 0,
			    .size = map ? map->end - map->start : 0,
			    .module = UINT32_MAX,
			    .frame = -1};

	/* Behind .bss. */
	if (map && end > map->start && end <= r->addr) {
		it.addr = (end + m->img->page_size - 1) & ~(uint64_t)(m->img->page_size - 1);
		it.size = map->end - it.addr;
	}
	if (kind == HOLDER_MAPPING || kind == HOLDER_CODE) {
		it.parent = add_parent(m, HOLDER_MAPPINGS, UINT32_MAX, 0);
		if (it.parent == INDEX_NONE)
			return INDEX_NONE;
	}
	return add_holder(m, &it);
}

static bool covers(const struct holder *it, enum holder_kind kind, uint64_t addr)
{
	return it->kind == kind && addr - it->addr < it->size;
}

static uint32_t of_global(struct maker *m, size_t i)
{
	const struct root *r = &m->g->roots.at[i];
	struct holder it = {
	    .addr = r->addr, .size = m->img->arch->word_size, .kind = HOLDER_PLACE, .frame = -1};
	struct module_variable v;

	/* Roots ascend, so the next one is most often in the same variable. */
	if (i && r[-1].kind == ROOT_GLOBAL &&
	    covers(&m->h->list.at[m->of_root[i - 1]], HOLDER_VARIABLE, r->addr))
		return m->of_root[i - 1];
	it.module = modules_at(m->h->modules, r->addr);
	if (r->addr >= modules_end(m->h->modules, it.module))
		return of_mapping(m, r, HOLDER_MAPPING);
	if (modules_variable(m->h->modules, r->addr, &v)) {
		it.kind = HOLDER_VARIABLE;
		it.addr = v.addr;
		it.size = v.size;
		it.symbol = v.symbol;
	}
	it.parent = add_parent(m, HOLDER_MODULE, it.module, 0);
	return it.parent == INDEX_NONE ? INDEX_NONE : add_holder(m, &it);
}

/* ------------------------------------------------------------- threads -- */

/* Is @addr near the thread pointer of @th, in the same mapping, and not on its stack? */
static bool near_tp(const struct maker *m, const struct image_thread *th, uint64_t addr)
{
	const struct stack_extent *e = frames_extent(&m->h->frames, th->tid);
	const uint64_t tp = th->tls - m->img->arch->tls.bias;

	if (!th->tls || (addr < tp ? tp - addr : addr - tp) > NEAR_TP ||
	    image_map_at(m->img, addr) != image_map_at(m->img, tp))
		return false;
	/* Below a stack that ends at the thread pointer there are only dead frames. */
	if (e && addr < e->low)
		return e->low > tp || image_map_at(m->img, e->low) != image_map_at(m->img, tp);
	return !e || (e->complete && addr >= e->high);
}

/* Return: the holder of a word of thread-local storage; INDEX_NONE with *@found false: it is none.
 */
static uint32_t of_tls(struct maker *m, const struct root *r, bool *found)
{
	vec_for_each (&m->img->threads, th) {
		struct holder it = {.kind = HOLDER_TLS,
				    .parent = INDEX_NONE,
				    .tid = th->tid,
				    .module = UINT32_MAX,
				    .frame = -1};
		struct module_variable v;

		*found = true;
		if (near_tp(m, th, r->addr) && modules_tls(m->h->modules, th->tls, r->addr, &v)) {
			it.addr = v.addr;
			it.size = v.size;
			it.symbol = v.symbol;
			it.module = 0;
			return add_holder(m, &it);
		}
		if (!near_tp(m, th, r->addr))
			continue;
		it.kind = HOLDER_TLS_PLACE;
		return add_holder(m, &it);
	}
	*found = false;
	return INDEX_NONE;
}

static uint32_t of_stack(struct maker *m, const struct root *r)
{
	struct holder it = {.kind = HOLDER_STACK,
			    .tid = r->tid,
			    .module = UINT32_MAX,
			    .frame = frames_at(&m->h->frames, r->addr)};

	if (it.frame >= 0) {
		it.kind = HOLDER_FRAME;
		it.tid = m->h->frames.list.at[it.frame].tid;
		it.addr = m->h->frames.list.at[it.frame].low;
		it.size = m->h->frames.list.at[it.frame].high - it.addr;
	}
	it.parent = add_thread(m, it.tid);
	return it.parent == INDEX_NONE ? INDEX_NONE : add_holder(m, &it);
}

/* Can thread-local storage be at the root?  The kernel merges it with the .bss of a library that happens to be mapped directly
 * before it. */
static bool can_be_tls(const struct maker *m, const struct root *r)
{
	struct modules *modules = m->h->modules;

	return r->kind == ROOT_STACK || r->kind == ROOT_MEMORY ||
	       (r->kind == ROOT_GLOBAL &&
		r->addr >= modules_end(modules, modules_at(modules, r->addr)));
}

static uint32_t of_root(struct maker *m, size_t i)
{
	const struct root *r = &m->g->roots.at[i];
	struct holder it = {
	    .kind = HOLDER_REGISTERS, .tid = r->tid, .module = UINT32_MAX, .frame = -1};
	uint32_t holder;
	bool found;

	if (can_be_tls(m, r)) {
		holder = of_tls(m, r, &found);
		if (found)
			return holder;
	}
	switch (r->kind) {
	case ROOT_GLOBAL:
		return of_global(m, i);
	case ROOT_STACK:
		return of_stack(m, r);
	case ROOT_REGISTER:
		it.parent = add_thread(m, r->tid);
		return it.parent == INDEX_NONE ? INDEX_NONE : add_holder(m, &it);
	case ROOT_TLS:
		return of_mapping(m, r, HOLDER_EXITED);
	case ROOT_CODE:
		return of_mapping(m, r, HOLDER_CODE);
	case ROOT_KERNEL:
		return of_mapping(m, r, HOLDER_KERNEL);
	default:
		return of_mapping(m, r, HOLDER_MAPPING);
	}
}

/* ------------------------------------------------------------- edges -- */

static bool is_weak(enum holder_kind kind)
{
	return kind == HOLDER_THREAD || kind == HOLDER_FRAME || kind == HOLDER_STACK ||
	       kind == HOLDER_REGISTERS || kind == HOLDER_KERNEL;
}

static int make_edges(struct maker *m)
{
	const size_t n = m->h->list.n, edges = m->g->roots.n;
	uint32_t *parent = calloc(n + 1, sizeof(*parent)), *first = calloc(n + 2, sizeof(*first)),
		 *to = calloc(edges + 1, sizeof(*to));
	bool *weak = calloc(n + 1, sizeof(*weak));
	uint64_t *exact = bitmap_new(edges);

	m->h->edges = (struct dom_holders){(uint32_t)n, parent, weak, first, to, exact};
	if (!parent || !first || !to || !weak || !exact)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		parent[i] = m->h->list.at[i].parent;
		weak[i] = is_weak(m->h->list.at[i].kind);
	}
	for (size_t i = 0; i < edges; i++)
		first[m->of_root[i] + 2]++;
	for (size_t i = 0; i < n; i++)
		first[i + 2] += first[i + 1];
	for (size_t i = 0; i < edges; i++) {
		uint32_t e = first[m->of_root[i] + 1]++;

		to[e] = m->g->roots.at[i].block;
		if (m->g->roots.at[i].exact)
			bitmap_set(exact, e);
	}
	return 0;
}

int holders_make(struct holders *h, struct graph *g, struct image *img, struct modules *modules)
{
	struct maker m = {.h = h, .g = g, .img = img, .known = intern_new()};
	int ret = -ENOMEM;

	memset(h, 0, sizeof(*h));
	h->img = img;
	h->modules = modules;
	m.of_root = malloc((g->roots.n + 1) * sizeof(*m.of_root));
	if (m.known && m.of_root && g->roots.n < INDEX_NONE)
		ret = frames_take(&h->frames, img, h->modules);
	for (size_t i = 0; i < g->roots.n && !ret; i++) {
		m.of_root[i] = of_root(&m, i);
		if (m.of_root[i] == INDEX_NONE)
			ret = -ENOMEM;
	}
	if (!ret)
		ret = make_edges(&m);
	intern_free(m.known);
	free(m.of_root);
	vec_free(&g->roots);
	return ret;
}

void holders_free(struct holders *h)
{
	free((void *)h->edges.parent);
	free((void *)h->edges.weak);
	free((void *)h->edges.first);
	free((void *)h->edges.to);
	free((void *)h->edges.exact);
	frames_free(&h->frames);
	vec_free(&h->list);
	memset(h, 0, sizeof(*h));
}

/* ------------------------------------------------------------- names -- */

/* "thread 12 (worker-3)", or in a core, which has no names, "thread 12". */
static void thread_name(const struct holders *h, pid_t tid, char *to, size_t size)
{
	struct proc_status st;

	if (!tid)
		snprintf(to, size, "a thread");
	else if (h->img->pid && !proc_status_read(h->img->pid, tid, &st))
		snprintf(to, size, "thread %d (%s)", tid, st.name);
	else
		snprintf(to, size, "thread %d", tid);
}

static uint64_t pointer_of(const struct holders *h, pid_t tid)
{
	vec_for_each (&h->img->threads, th) {
		if (th->tid == tid)
			return th->tls;
	}
	return 0;
}

static void name_variable(const struct holders *h, const struct holder *it, struct holder_name *out)
{
	const struct module_variable v = {it->addr, it->size, it->symbol};
	struct module_name name;
	char thread[64];

	modules_name(h->modules, &v, it->tid ? pointer_of(h, it->tid) : 0, &name);
	out->source = name.source;
	out->line = name.line;
	out->module = modules_path(h->modules, it->module);
	thread_name(h, it->tid, thread, sizeof(thread));
	if (it->tid)
		snprintf(out->name, sizeof(out->name), "%s of %s", name.name, thread);
	else
		snprintf(out->name, sizeof(out->name), "%s", name.name);
}

static void name_frame(const struct holders *h, const struct holder *it, struct holder_name *out)
{
	const struct stack_frame *f = &h->frames.list.at[it->frame];
	char function[160] = "a function without a symbol", thread[64];
	bool known = modules_function(h->modules, f->pc, function, sizeof(function));

	thread_name(h, it->tid, thread, sizeof(thread));
	/* Names in C++ have their parameters already. */
	snprintf(out->name, sizeof(out->name), "%s%s of %s", function,
		 known && !strchr(function, '(') ? "()" : "", thread);
	if (modules_at(h->modules, f->pc) != UINT32_MAX)
		out->module = modules_path(h->modules, modules_at(h->modules, f->pc));
}

static void name_place(const struct holders *h, const struct holder *it, struct holder_name *out)
{
	char place[96];

	out->module = modules_path(h->modules, it->module);
	modules_place(h->modules, it->addr, place, sizeof(place));
	snprintf(out->name, sizeof(out->name), "%s", place);
}

static void name_mapping(const struct holders *h, const struct holder *it, struct holder_name *out)
{
	const struct image_map *m = it->addr ? image_map_at(h->img, it->addr) : NULL;

	snprintf(out->name, sizeof(out->name), "%s at %#" PRIx64 "%s%.120s",
		 it->kind == HOLDER_EXITED ? "data of an exited thread"
		 : it->kind == HOLDER_CODE ? "code made at run time"
					   : "mapping",
		 it->addr, m && m->path[0] ? " " : "", m ? m->path : "");
}

void holder_name(const struct holders *h, uint32_t holder, struct holder_name *out)
{
	const struct holder *it = &h->list.at[holder];
	char thread[64];

	memset(out, 0, sizeof(*out));
	thread_name(h, it->tid, thread, sizeof(thread));
	switch (it->kind) {
	case HOLDER_MODULE:
		out->module = modules_path(h->modules, it->module);
		snprintf(out->name, sizeof(out->name), "several variables");
		return;
	case HOLDER_MAPPINGS:
		snprintf(out->name, sizeof(out->name), "several mappings");
		return;
	case HOLDER_VARIABLE:
	case HOLDER_TLS:
		name_variable(h, it, out);
		return;
	case HOLDER_PLACE:
		name_place(h, it, out);
		return;
	case HOLDER_THREAD:
		snprintf(out->name, sizeof(out->name), "several frames or registers of %s", thread);
		return;
	case HOLDER_FRAME:
		name_frame(h, it, out);
		return;
	case HOLDER_STACK:
		snprintf(out->name, sizeof(out->name), "stack of %s (frame not known)", thread);
		return;
	case HOLDER_REGISTERS:
		snprintf(out->name, sizeof(out->name), "registers of %s", thread);
		return;
	case HOLDER_TLS_PLACE:
		snprintf(out->name, sizeof(out->name), "thread-local data of %s", thread);
		return;
	case HOLDER_KERNEL:
		snprintf(out->name, sizeof(out->name),
			 "the kernel (epoll, a timer or a signal stack)");
		return;
	default:
		name_mapping(h, it, out);
	}
}

bool holder_is(const struct holders *h, uint32_t holder, const char *name)
{
	const struct holder *it = &h->list.at[holder];
	const char *file, *colon;
	struct module_name n;

	if (!it->symbol)
		return false;
	if (!strcmp(it->symbol, name))
		return true;
	modules_name(h->modules, &(struct module_variable){it->addr, it->size, it->symbol},
		     it->tid ? pointer_of(h, it->tid) : 0, &n);
	if (!strcmp(n.name, name))
		return true;
	/* "f.c:cache" */
	colon = strrchr(name, ':');
	file = n.source ? path_base(n.source) : NULL;
	return file && colon && !strcmp(colon + 1, n.name) &&
	       strlen(file) == (size_t)(colon - name) && !memcmp(file, name, strlen(file));
}
