/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "leaks/graph_take.h"
#include "leaks/retained/retained_builder.h"
#include "lib/deadline.h"

/* Processor time of this process: on a busy machine the time of a clock says little. */
static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int make_graph(struct retained_builder *b, const struct census *c, struct mp_err *err)
{
	struct coverage cover;
	int ret = graph_take(&b->graph, b->img, c, true, &cover, err);

	b->r->roots = b->graph.roots.n;
	b->r->edges = b->graph.to.n;
	b->r->unreadable_bytes = b->graph.unreadable_bytes;
	return ret;
}

static void count_threads(struct retained_builder *b)
{
	b->r->threads = (uint32_t)b->img->threads.n;
	vec_for_each (&b->holders.frames.extents, e)
		b->r->unwound += e->complete;
}

static void sum_up(struct retained_builder *b)
{
	struct retained_line *all = b->r->all;

	for (uint32_t i = 0; i < b->graph.n; i++) {
		b->r->live_bytes += b->graph.block[i].size;
		if (b->tree.place[i] != INDEX_NONE)
			continue;
		b->r->unreached_blocks++;
		b->r->unreached_bytes += b->graph.block[i].size;
	}
	b->r->live_blocks = b->graph.n;
	for (const struct retained_line *l = b->o->of ? all->child : NULL; l; l = l->next) {
		all->bytes += l->bytes;
		all->blocks += l->blocks;
		all->exact += l->exact;
	}
	if (b->o->of)
		return;
	all->bytes = b->tree.bytes[0];
	all->blocks = b->r->live_blocks - b->r->unreached_blocks;
	all->exact = b->tree.exact[0];
}

static int make_lines(struct retained_builder *b, struct mp_err *err)
{
	uint64_t start = cpu_ns();
	int ret = retained_note_shared(b);

	dominators_settle(&b->tree);
	if (!ret && b->o->line_of) {
		b->r->line_of = calloc(b->graph.n + 1ull, sizeof(*b->r->line_of));
		ret = b->r->line_of ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = b->o->of ? retained_add_asked(b, err) : retained_add_roots(b);
	if (!ret)
		sum_up(b);
	b->r->lines_ns = cpu_ns() - start;
	return ret;
}

static int name_blocks(struct retained_builder *b)
{
	uint64_t start = cpu_ns();
	int ret = -ENOMEM;

	b->modules = modules_new(b->img);
	if (b->modules)
		ret = block_names_take(&b->names, &b->graph, b->img, b->modules);
	if (!ret && b->o->types)
		ret = heap_types_sum(b->o->types, &b->names, b->modules, &b->graph, false);
	index_trim(&b->graph.index);
	b->r->names_ns = cpu_ns() - start;
	return ret;
}

static int build(struct retained_builder *b, const struct census *c, struct mp_err *err)
{
	uint64_t began = mono_ns(), start = cpu_ns();
	int ret = make_graph(b, c, err);

	b->r->scan_ns = cpu_ns() - start;
	b->r->graph_wall_ns = mono_ns() - began;
	if (ret)
		return ret;
	ret = name_blocks(b);
	start = cpu_ns();
	began = mono_ns();
	b->r->all = retained_line_new(RETAINED_ALL);
	if (!ret)
		ret =
		    b->r->all ? holders_make(&b->holders, &b->graph, b->img, b->modules) : -ENOMEM;
	count_threads(b);
	if (!ret)
		ret = dominators_find(&b->tree, &b->graph, &b->holders.edges);
	b->r->dominators_ns = cpu_ns() - start;
	b->r->graph_wall_ns += mono_ns() - began;
	if (!ret)
		ret = make_lines(b, err);
	if (ret && ret != -ENOENT)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "no memory for the dominators of %u blocks", b->graph.n);
	return ret;
}

int retained_take(struct retained *r, struct image *img, const struct census *c,
		  const struct retained_options *o, struct mp_err *err)
{
	struct retained_builder b = {.r = r, .o = o, .img = img};
	int ret;

	memset(r, 0, sizeof(*r));
	ret = build(&b, c, err);
	vec_free(&b.shared);
	r->notes = block_names_take_notes(&b.names);
	block_names_free(&b.names);
	dominators_free(&b.tree);
	holders_free(&b.holders);
	modules_free(b.modules);
	graph_free(&b.graph);
	return ret;
}

void retained_free(struct retained *r)
{
	retained_line_free(r->all);
	vec_for_each (&r->path, l)
		retained_line_free(*l);
	vec_free(&r->path);
	free(r->line_of);
	block_notes_free(&r->notes);
	memset(r, 0, sizeof(*r));
}
