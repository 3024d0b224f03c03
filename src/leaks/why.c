/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "leaks/retained/holders.h"
#include "leaks/mark.h"
#include "leaks/python/python.h"
#include "lib/path.h"

static struct why_block describe(const struct graph *g, struct image *img, struct types *types,
				 uint32_t block)
{
	const struct heap_block *b = &g->block[block];
	struct why_block w = {.addr = b->addr, .size = b->size};
	_Alignas(8) char buf[256];
	struct type t;
	size_t n =
	    image_read(img, b->addr, buf, b->size < sizeof(buf) ? (size_t)b->size : sizeof(buf));

	if (!python_describe(g->python, block, &t))
		types_of(types, buf, n, &t);
	snprintf(w.type, sizeof(w.type), "%s", t.name ? t.name : shape_name(t.shape));
	return w;
}

static const char *before_name(enum holder_kind kind)
{
	switch (kind) {
	case HOLDER_VARIABLE:
		return "global ";
	case HOLDER_TLS:
		return "thread-local variable ";
	case HOLDER_FRAME:
		return "stack, in ";
	default:
		return "";
	}
}

static int name_root(struct why *w, struct image *img)
{
	struct graph only = {.arch = img->arch};
	struct holder_name n = {0};
	const struct holder *it;
	struct holders h = {0};
	char offset[32] = "", at[32] = "", source[160] = "";
	struct modules *modules = modules_new(img);
	int ret = modules ? vec_push(&only.roots, w->root) : -ENOMEM;

	if (!ret)
		ret = holders_make(&h, &only, img, modules);
	vec_free(&only.roots);
	if (!ret) {
		/* The parent of a variable or frame comes before it. */
		holder_name(&h, (uint32_t)h.list.n - 1, &n);
		it = &h.list.at[h.list.n - 1];
		if (it->symbol && w->root.addr != it->addr)
			snprintf(offset, sizeof(offset), "+%" PRIu64, w->root.addr - it->addr);
		if (n.source)
			snprintf(source, sizeof(source), ", declared at %.128s:%u",
				 path_base(n.source), n.line);
		if (w->root.addr)
			snprintf(at, sizeof(at), ", at %#" PRIx64, w->root.addr);
		if (it->kind == HOLDER_PLACE)
			snprintf(w->root_name, sizeof(w->root_name), "global data of %.160s, %s%s",
				 n.module, n.name, at);
		else
			snprintf(w->root_name, sizeof(w->root_name), "%s%s%s%s%s",
				 before_name(it->kind), n.name, offset, source, at);
	}
	holders_free(&h);
	modules_free(modules);
	return ret;
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
	w->python = g->python != NULL;
	find_pointers(w, g, img, types, block);
	ret = mark_path(g, block, &path);
	if (!ret) {
		w->reached = true;
		w->root = path.root;
		ret = name_root(w, img);
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
