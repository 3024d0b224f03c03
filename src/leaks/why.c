/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "leaks/mark.h"
#include "leaks/objects.h"

static struct why_block describe(const struct graph *g, struct image *img, struct types *types,
				 uint32_t block)
{
	const struct heap_block *b = &g->block[block];
	struct why_block w = {.addr = b->addr, .size = b->size};
	_Alignas(8) char buf[256];
	struct type t;
	size_t n =
	    image_read(img, b->addr, buf, b->size < sizeof(buf) ? (size_t)b->size : sizeof(buf));

	types_of(types, buf, n, &t);
	snprintf(w.type, sizeof(w.type), "%s", t.name ? t.name : shape_name(t.shape));
	return w;
}

static void name_root(struct why *w, struct image *img)
{
	const struct root *r = &w->root;
	const struct image_map *m = r->addr ? image_map_at(img, r->addr) : NULL;
	char object[160];

	switch (r->kind) {
	case ROOT_REGISTER:
		snprintf(w->root_name, sizeof(w->root_name), "register of thread %d", r->tid);
		return;
	case ROOT_STACK:
		if (r->tid)
			snprintf(w->root_name, sizeof(w->root_name),
				 "stack of thread %d, at %#" PRIx64, r->tid, r->addr);
		else
			snprintf(w->root_name, sizeof(w->root_name), "a stack, at %#" PRIx64,
				 r->addr);
		return;
	case ROOT_KERNEL:
		snprintf(w->root_name, sizeof(w->root_name), "the kernel (epoll or a timer)");
		return;
	case ROOT_TLS:
		snprintf(w->root_name, sizeof(w->root_name),
			 "data of an exited thread, at %#" PRIx64, r->addr);
		return;
	case ROOT_GLOBAL:
		if (object_at(img, r->addr, object, sizeof(object))) {
			snprintf(w->root_name, sizeof(w->root_name), "global %s, at %#" PRIx64,
				 object, r->addr);
			return;
		}
		while (m && !m->path[0] && m > img->maps.at)
			m--;
		snprintf(w->root_name, sizeof(w->root_name), "global data of %.150s, at %#" PRIx64,
			 m ? m->path : "?", r->addr);
		return;
	case ROOT_CODE:
		snprintf(w->root_name, sizeof(w->root_name),
			 "code generated at run time, at %#" PRIx64, r->addr);
		return;
	case ROOT_MEMORY:
		snprintf(w->root_name, sizeof(w->root_name), "mapped memory %.150s at %#" PRIx64,
			 m && m->path[0] ? m->path : "(anonymous)", r->addr);
		return;
	}
}

/* Edges cannot be followed backwards, so all blocks are searched. */
static void find_pointers(struct why *w, const struct graph *g, struct image *img,
			  struct types *types, uint32_t block)
{
	for (uint32_t b = 0; b < g->n; b++) {
		for (uint32_t e = g->first[b]; e < g->first[b + 1]; e++) {
			if (g->to.at[e] != block)
				continue;
			if (w->pointers < WHY_POINTERS)
				w->pointer[w->pointers] = describe(g, img, types, b);
			w->pointers++;
			break;
		}
	}
}

int why_explain(struct why *w, const struct graph *g, struct image *img, uint64_t addr)
{
	struct types *types = types_new(img);
	uint32_t block = g->n ? index_find(&g->index, addr) : INDEX_NONE;
	struct path path = {0};
	int ret = types ? 0 : -ENOMEM;

	memset(w, 0, sizeof(*w));
	w->asked = addr;
	if (ret || block == INDEX_NONE) {
		types_free(types);
		return ret;
	}
	w->block = describe(g, img, types, block);
	find_pointers(w, g, img, types, block);
	ret = mark_path(g, block, &path);
	if (!ret) {
		w->reached = true;
		w->root = path.root;
		name_root(w, img);
		vec_for_each (&path.blocks, b) {
			if (!ret)
				ret = vec_push(&w->path, describe(g, img, types, *b));
		}
	}
	if (ret == -ENOENT)
		ret = 0;
	if (!ret)
		ret = mark_retained(g, block, &w->retained_count, &w->retained_bytes);
	vec_free(&path.blocks);
	types_free(types);
	return ret;
}

void why_free(struct why *w)
{
	vec_free(&w->path);
}
