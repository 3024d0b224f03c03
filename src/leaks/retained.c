/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "leaks/graph_take.h"
#include "lib/deadline.h"
#include "lib/intern.h"

/* Of this many blocks that several roots share, the roots are searched: each search can visit all
 * edges. */
#define MAX_SHARED 8
/* Containers that are compared with a line of blocks. */
#define MAX_SIBLINGS 256

/* The roots of a block that several of them share. */
struct sharing {
	uint32_t place;
	uint64_t roots;
	uint32_t holder[RETAINED_ROOTS];
};

/* Processor time of this process: on a busy machine the time of a clock says little. */
static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

struct places {
	VEC(uint32_t) list;
};

/* Blocks of one kind below one line. */
struct group {
	uint64_t key, bytes, exact, blocks, count, own;
	uint32_t sample; /* place of the block that retains most */
	bool kept;
	struct places members;
};

struct builder {
	struct retained *r;
	const struct retained_options *o;
	struct image *img;
	struct graph graph;
	struct holders holders;
	struct dominators tree;
	struct modules *modules;
	struct block_names names;
	VEC(struct sharing) shared;
};

static struct retained_line *line_new(enum retained_kind kind)
{
	struct retained_line *l = calloc(1, sizeof(*l));

	if (l)
		l->kind = kind;
	return l;
}

/* Frees @l with its children.  Their depth is bounded. */
static void line_free(struct retained_line *l)
{
	struct retained_line *next;

	if (!l)
		return;
	for (struct retained_line *c = l->child; c; c = next) {
		next = c->next;
		line_free(c);
	}
	for (int i = 0; i < RETAINED_ROOTS; i++)
		free(l->root[i]);
	free(l->name);
	free(l->module);
	free(l->source);
	free(l->type);
	free(l->container.name);
	free(l);
}

/* Inserts @l among the children of @parent, most bytes first, the rest last. */
static void line_insert(struct retained_line *parent, struct retained_line *l)
{
	struct retained_line **at = &parent->child;

	while (*at && (*at)->kind != RETAINED_REST &&
	       (l->kind == RETAINED_REST || (*at)->bytes >= l->bytes))
		at = &(*at)->next;
	l->next = *at;
	*at = l;
}

static bool is_block(const struct builder *b, uint32_t place)
{
	return b->tree.node[place] < b->tree.blocks;
}

static const struct heap_block *block_at(const struct builder *b, uint32_t place)
{
	return &b->graph.block[b->tree.node[place]];
}

/* Notes the container that is in [@addr, @addr + @size).  Return: 0 or -ENOMEM. */
static int note_container(const struct builder *b, struct retained_line *l, uint64_t addr,
			  uint64_t size)
{
	const struct container *c = block_names_container_in(&b->names, addr, size);
	const struct block_name *name = c ? &b->names.list.at[c->name - 1] : NULL;

	if (!c)
		return 0;
	l->container = (struct line_container){strdup(name->text), name->source, *c};
	return l->container.name ? 0 : -ENOMEM;
}

/* Places of the first blocks of containers, by place. */
struct firsts {
	uint32_t place[MAX_SIBLINGS], container[MAX_SIBLINGS], n;
};

static void firsts_add(struct firsts *f, uint32_t place, uint32_t container)
{
	uint32_t i = f->n++;

	for (; i && f->place[i - 1] > place; i--) {
		f->place[i] = f->place[i - 1];
		f->container[i] = f->container[i - 1];
	}
	f->place[i] = place;
	f->container[i] = container;
}

/* Notes the largest container whose first block is a sibling of @place, and of its kind.  Return: 0
 * or -ENOMEM. */
static int note_siblings(const struct builder *b, struct retained_line *l, uint32_t place)
{
	const uint64_t key = block_names_key(&b->names, b->tree.node[place]);
	const uint32_t above = dominators_parent(&b->tree, place);
	const uint32_t end = above + b->tree.count[above];
	struct firsts f = {.n = 0};
	uint32_t best = UINT32_MAX, i = 0;

	for (uint32_t c = 0; c < b->names.containers.n && c < MAX_SIBLINGS; c++) {
		const uint32_t block =
		    index_search(&b->graph.index, b->names.containers.at[c].first);
		const uint32_t at = block == INDEX_NONE ? INDEX_NONE : b->tree.place[block];

		if (at > above && at < end && block_names_key(&b->names, block) == key)
			firsts_add(&f, at, c);
	}
	for (uint32_t at = above + 1; at < end && i < f.n; at += b->tree.count[at]) {
		while (i < f.n && f.place[i] < at)
			i++;
		for (; i < f.n && f.place[i] == at; i++)
			best = f.container[i] < best ? f.container[i] : best;
	}
	return best == UINT32_MAX ? 0 : note_container(b, l, b->names.containers.at[best].first, 1);
}

/* ------------------------------------------------------------- lines of blocks -- */

static int describe(struct builder *b, struct retained_line *l, const struct group *g)
{
	const struct heap_block *block = block_at(b, g->sample);
	struct type t;

	l->source_of = block_names_type(&b->names, b->tree.node[g->sample], &t);
	l->name = strdup(t.name ? t.name : shape_name(t.shape));
	l->module = t.owner ? strdup(t.owner) : NULL;
	l->addr = block->addr;
	l->size = block->size;
	vec_for_each (&b->shared, s) {
		if (s->place != g->sample)
			continue;
		l->roots = s->roots;
		for (uint64_t i = 0; i < s->roots && i < RETAINED_ROOTS; i++) {
			struct holder_name n;

			holder_name(&b->holders, s->holder[i], &n);
			l->root[i] = strdup(n.name);
			if (!l->root[i])
				return -ENOMEM;
		}
	}
	if (!l->name || (t.owner && !l->module))
		return -ENOMEM;
	if (note_container(b, l, block->addr, block->size))
		return -ENOMEM;
	/* A list that several variables lead to has all its nodes side by side. */
	return l->source_of == NAME_SHAPE && !l->container.name ? note_siblings(b, l, g->sample)
								: 0;
}

/* Groups of the blocks below some others. */
struct grouping {
	struct intern *keys;
	VEC(struct group) groups;
};

static int add_to_group(struct builder *b, struct grouping *gr, uint64_t key, uint32_t place)
{
	bool fresh;
	uint32_t id = intern_pair(gr->keys, key, 0, &fresh);
	struct group empty = {.key = key, .sample = place}, *g;

	if (!id || (fresh && vec_push(&gr->groups, empty)) || !gr->groups.at)
		return -ENOMEM;
	g = &gr->groups.at[id - 1];
	g->bytes += b->tree.bytes[place];
	g->exact += b->tree.exact[place];
	g->blocks += b->tree.count[place];
	g->count++;
	g->own += block_at(b, place)->size;
	if (b->tree.bytes[place] > b->tree.bytes[g->sample])
		g->sample = place;
	return 0;
}

/* Puts the blocks below @above into groups.  Those with the key @own are part of line @l, and are
 * appended to @above. */
static int make_groups(struct builder *b, struct grouping *gr, struct retained_line *l,
		       struct places *above, uint64_t own)
{
	const struct dominators *t = &b->tree;
	int ret = 0;

	for (size_t i = 0; i < above->list.n && !ret; i++) {
		uint32_t at = above->list.at[i], end = at + t->count[at];

		for (uint32_t c = at + 1; c < end && !ret; c += t->count[c]) {
			uint64_t key;

			if (c + 16 < end && is_block(b, c + 16))
				block_names_fetch(&b->names, t->node[c + 16]);
			if (!is_block(b, c))
				continue;
			key = block_names_key(&b->names, t->node[c]);
			if (key != own) {
				ret = add_to_group(b, gr, key, c);
				continue;
			}
			l->count++;
			l->own += block_at(b, c)->size;
			if (l->size != block_at(b, c)->size)
				l->size = 0;
			ret = vec_push(&above->list, c);
		}
	}
	return ret;
}

static int collect_members(struct builder *b, struct grouping *gr, const struct places *above,
			   uint64_t own)
{
	const struct dominators *t = &b->tree;
	int ret = 0;

	if (!gr->groups.at)
		return 0;
	for (size_t i = 0; i < above->list.n && !ret; i++) {
		uint32_t at = above->list.at[i], end = at + t->count[at];

		for (uint32_t c = at + 1; c < end && !ret; c += t->count[c]) {
			uint64_t key;
			struct group *g;

			if (c + 16 < end && is_block(b, c + 16))
				block_names_fetch(&b->names, t->node[c + 16]);
			if (!is_block(b, c))
				continue;
			key = block_names_key(&b->names, t->node[c]);
			if (key == own)
				continue;
			g = &gr->groups.at[intern_pair(gr->keys, key, 0, NULL) - 1];
			if (g->kept)
				ret = vec_push(&g->members.list, c);
		}
	}
	return ret;
}

static int larger(const void *a, const void *b)
{
	const struct group *x = *(struct group *const *)a, *y = *(struct group *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Marks the @max groups that retain most.  Return: 0 or -ENOMEM. */
static int keep_groups(struct grouping *gr, uint32_t max)
{
	struct group **sorted = malloc((gr->groups.n + 1) * sizeof(struct group *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < gr->groups.n; i++)
		sorted[i] = &gr->groups.at[i];
	qsort(sorted, gr->groups.n, sizeof(*sorted), larger);
	for (size_t i = 0; i < max && i < gr->groups.n; i++)
		sorted[i]->kept = true;
	free(sorted);
	return 0;
}

/* Chooses the groups that become lines; the others become one line. */
static int choose(struct builder *b, struct grouping *gr, struct retained_line *l, uint32_t depth)
{
	struct retained_line *rest = line_new(RETAINED_REST);

	if (!rest || keep_groups(gr, depth < b->o->depth ? b->o->count : 0)) {
		free(rest);
		return -ENOMEM;
	}
	vec_for_each (&gr->groups, g) {
		if (g->kept)
			continue;
		rest->count++;
		rest->bytes += g->bytes;
		rest->blocks += g->blocks;
		rest->exact += g->exact;
	}
	if (rest->count)
		line_insert(l, rest);
	else
		free(rest);
	return 0;
}

static int add_lines(struct builder *b, struct retained_line *l, struct places *above, uint64_t own,
		     uint32_t depth);

static int add_line(struct builder *b, struct retained_line *parent, struct group *g,
		    uint32_t depth)
{
	struct retained_line *l = line_new(RETAINED_BLOCKS);
	int ret = l ? describe(b, l, g) : -ENOMEM;

	if (!l)
		return ret;
	l->count = g->count;
	l->own = g->own;
	l->bytes = g->bytes;
	l->blocks = g->blocks;
	l->exact = g->exact;
	if (g->own != g->count * l->size)
		l->size = 0;
	line_insert(parent, l);
	return ret ? ret : add_lines(b, l, &g->members, g->key, depth);
}

/* Adds the lines below @l, whose blocks are @above.  The recursion is as deep as the report. */
static int add_lines(struct builder *b, struct retained_line *l, struct places *above, uint64_t own,
		     uint32_t depth)
{
	struct grouping gr = {.keys = intern_new()};
	int ret = gr.keys ? make_groups(b, &gr, l, above, own) : -ENOMEM;

	if (b->r->line_of && l->kind == RETAINED_BLOCKS) {
		l->number = ++b->r->lines;
		vec_for_each (&above->list, place)
			b->r->line_of[b->tree.node[*place]] = l->number;
	}
	if (!ret)
		ret = choose(b, &gr, l, depth);
	if (!ret)
		ret = collect_members(b, &gr, above, own);
	vec_free(&above->list);
	vec_for_each (&gr.groups, g) {
		if (g->kept && !ret)
			ret = add_line(b, l, g, depth + 1);
	}
	vec_for_each (&gr.groups, g)
		vec_free(&g->members.list);
	vec_free(&gr.groups);
	intern_free(gr.keys);
	return ret;
}

/* ------------------------------------------------------------- lines of roots -- */

/* Number of blocks in a subtree. */
static uint64_t blocks_in(const struct builder *b, uint32_t place)
{
	uint64_t n = b->tree.count[place];

	if (is_block(b, place))
		return n;
	/* Holders are directly below the virtual one, or below other holders. */
	for (uint32_t c = place; c < place + b->tree.count[place];
	     c += is_block(b, c) ? b->tree.count[c] : 1)
		n -= !is_block(b, c);
	return n;
}

static int name_holder(const struct builder *b, struct retained_line *l, uint32_t holder)
{
	const struct holder *it = &b->holders.list.at[holder];
	const struct block_name *type = block_names_variable_type(&b->names, it->addr);
	struct holder_name n;

	holder_name(&b->holders, holder, &n);
	l->holder = it->kind;
	l->name = strdup(n.name);
	l->module = n.module ? strdup(n.module) : NULL;
	l->source = n.source ? strdup(n.source) : NULL;
	l->line = n.line;
	l->tid = it->tid;
	if (!l->name || (n.module && !l->module) || (n.source && !l->source))
		return -ENOMEM;
	if (holder_is_parent(it->kind))
		return 0;
	l->addr = it->addr;
	l->size = it->size;
	if (it->addr && type) {
		l->type = strdup(type->text);
		l->source_of = type->source;
		if (!l->type)
			return -ENOMEM;
	}
	return it->addr ? note_container(b, l, it->addr, it->size) : 0;
}

static int add_below(struct builder *b, struct retained_line *l, uint32_t place)
{
	struct places above = {0};

	return vec_push(&above.list, place) ? -ENOMEM
					    : add_lines(b, l, &above, BLOCK_NAMES_KEY_NONE, 0);
}

/* Sums up the blocks directly below @place. */
static void sum_shared(const struct builder *b, uint32_t place, struct retained_line *sum)
{
	for (uint32_t c = place + 1; c < place + b->tree.count[place]; c += b->tree.count[c]) {
		if (!is_block(b, c))
			continue;
		sum->bytes += b->tree.bytes[c];
		sum->exact += b->tree.exact[c];
		sum->blocks += b->tree.count[c];
	}
}

/* A line of what one root keeps; or of the blocks directly below @place, which several of the roots
 * below it share. */
static int add_root_line(struct builder *b, uint32_t place, bool shared)
{
	const uint32_t node = b->tree.node[place];
	struct retained_line *l = line_new(shared ? RETAINED_SHARED : RETAINED_HOLDER);
	int ret = 0;

	if (!l)
		return -ENOMEM;
	if (place)
		ret = name_holder(b, l, node - b->tree.blocks);
	else
		l->name = strdup("several roots");
	if (!shared) {
		l->bytes = b->tree.bytes[place];
		l->exact = b->tree.exact[place];
		l->blocks = blocks_in(b, place);
	}
	if (shared)
		sum_shared(b, place, l);
	if (ret || !l->name) {
		line_free(l);
		return -ENOMEM;
	}
	line_insert(b->r->all, l);
	return add_below(b, l, place);
}

/* Is the holder one of others? */
static bool is_group(const struct builder *b, uint32_t place)
{
	const uint32_t node = b->tree.node[place];

	if (!place)
		return true;
	return !is_block(b, place) &&
	       holder_is_parent(b->holders.list.at[node - b->tree.blocks].kind);
}

struct candidate {
	uint32_t place;
	bool shared;
	struct retained_line sum; /* .bytes; of shared ones .blocks and .exact, too */
};
struct candidates {
	VEC(struct candidate) list;
};

/* Lists the roots: all holders that are no groups, and the groups that have blocks of their own. */
static int list_roots(const struct builder *b, struct candidates *roots)
{
	for (uint32_t p = 0; p < b->tree.n;
	     p += is_group(b, p) || !is_block(b, p) ? 1 : b->tree.count[p]) {
		struct candidate it = {.place = p, .shared = is_group(b, p)};

		if (is_block(b, p))
			continue;
		if (it.shared)
			sum_shared(b, p, &it.sum);
		else
			it.sum.bytes = b->tree.bytes[p];
		if (it.sum.bytes && vec_push(&roots->list, it))
			return -ENOMEM;
	}
	return 0;
}

static int most_bytes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes > y->sum.bytes ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int add_roots(struct builder *b)
{
	struct retained_line *rest = line_new(RETAINED_REST);
	struct candidates roots = {0};
	int ret = rest ? list_roots(b, &roots) : -ENOMEM;

	if (roots.list.n)
		qsort(roots.list.at, roots.list.n, sizeof(roots.list.at[0]), most_bytes);
	for (size_t i = 0; i < roots.list.n && !ret; i++) {
		const struct candidate *it = &roots.list.at[i];

		if (i < b->o->count) {
			ret = add_root_line(b, it->place, it->shared);
			continue;
		}
		rest->count++;
		rest->bytes += it->sum.bytes;
		rest->blocks += it->shared ? it->sum.blocks : blocks_in(b, it->place);
		rest->exact += it->shared ? it->sum.exact : b->tree.exact[it->place];
	}
	vec_free(&roots.list);
	if (rest && rest->count)
		line_insert(b->r->all, rest);
	else
		free(rest);
	return ret;
}

/* ------------------------------------------------------------- who shares a block -- */

/* Counts and notes the roots that reach the block at @place. */
static int note_sharing(struct builder *b, uint32_t place)
{
	struct sharing s = {.place = place};
	int64_t n = dominators_holders(&b->tree, place, s.holder, RETAINED_ROOTS);

	s.roots = n < 0 ? 0 : (uint64_t)n;
	return n < 0 || vec_push(&b->shared, s) ? -ENOMEM : 0;
}

/* Keeps the @max places that retain most, most first.  Return: their number. */
static uint32_t keep_largest(const struct builder *b, uint32_t *most, uint32_t n, uint32_t max,
			     uint32_t place)
{
	uint32_t i = n;

	while (i && b->tree.bytes[most[i - 1]] < b->tree.bytes[place])
		i--;
	if (i == max)
		return n;
	n += n < max;
	memmove(&most[i + 1], &most[i], (n - 1 - i) * sizeof(*most));
	most[i] = place;
	return n;
}

/* Notes the roots of the blocks directly below @place that retain most. */
static int note_largest(struct builder *b, uint32_t place)
{
	uint32_t most[MAX_SHARED], n = 0;
	int ret = 0;

	for (uint32_t c = place + 1; c < place + b->tree.count[place]; c += b->tree.count[c]) {
		if (is_block(b, c))
			n = keep_largest(b, most, n, MAX_SHARED, c);
	}
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = note_sharing(b, most[i]);
	return ret;
}

static int note_shared(struct builder *b)
{
	int ret = 0;

	for (uint32_t p = 0; p < b->tree.n && !ret;
	     p += is_group(b, p) || !is_block(b, p) ? 1 : b->tree.count[p]) {
		if (is_group(b, p))
			ret = note_largest(b, p);
	}
	return ret;
}

/* ------------------------------------------------------------- one subtree -- */

/* The lines from a root to the block at @place.  A block of the same kind as the one before is on
 * the same line. */
static int make_path(struct builder *b, uint32_t place)
{
	const struct dominators *t = &b->tree;
	uint64_t last = BLOCK_NAMES_KEY_NONE, key;
	struct retained_line *l = NULL;
	int ret = 0;

	for (uint32_t at = 0; at != place && !ret;) {
		uint32_t child = at + 1;

		while (place - child >= t->count[child])
			child += t->count[child];
		at = child;
		key = is_block(b, at) ? block_names_key(&b->names, t->node[at])
				      : BLOCK_NAMES_KEY_NONE;
		if (l && key != BLOCK_NAMES_KEY_NONE && key == last) {
			l->count++;
			continue;
		}
		last = key;
		l = line_new(is_block(b, at) ? RETAINED_BLOCKS : RETAINED_HOLDER);
		if (!l || vec_push(&b->r->path, l)) {
			line_free(l);
			return -ENOMEM;
		}
		l->bytes = t->bytes[at];
		l->exact = t->exact[at];
		l->blocks = blocks_in(b, at);
		l->count = is_block(b, at);
		ret = is_block(b, at) ? describe(b, l, &(struct group){.sample = at})
				      : name_holder(b, l, t->node[at] - t->blocks);
	}
	return ret;
}

static int add_block(struct builder *b, uint32_t place)
{
	struct group g = {.bytes = b->tree.bytes[place],
			  .exact = b->tree.exact[place],
			  .blocks = b->tree.count[place],
			  .own = block_at(b, place)->size,
			  .count = 1,
			  .key = block_names_key(&b->names, b->tree.node[place]),
			  .sample = place};
	int ret = make_path(b, place);

	if (!ret)
		ret = vec_push(&g.members.list, place);
	if (!ret)
		ret = add_line(b, b->r->all, &g, 0);
	vec_free(&g.members.list);
	return ret;
}

/* Adds the variables called @name.  Return: their number, or -ENOMEM. */
static int add_variables(struct builder *b, const char *name)
{
	int found = 0, ret = 0;

	for (uint32_t i = 0; i < b->holders.list.n && !ret; i++) {
		if (!holder_is(&b->holders, i, name))
			continue;
		found++;
		ret = add_root_line(b, b->tree.place[b->tree.blocks + i], false);
	}
	return ret ? ret : found;
}

/* Return: the number of the block that the text is an address in, or INDEX_NONE. */
static uint32_t block_called(const struct builder *b, const char *text)
{
	char *end;
	uint64_t addr;

	errno = 0;
	addr = strtoull(text, &end, 16);
	if (errno || end == text || *end || !b->graph.n)
		return INDEX_NONE;
	return index_search(&b->graph.index, addr);
}

static int add_asked(struct builder *b, struct mp_err *err)
{
	int found = add_variables(b, b->o->of);
	uint32_t block = found ? INDEX_NONE : block_called(b, b->o->of);

	if (found)
		return found < 0 ? found : 0;
	if (block == INDEX_NONE)
		return mp_fail(err, MP_EXIT_USAGE, -ENOENT,
			       "--of: no variable called '%s' keeps a block, and it is no address "
			       "in a live block",
			       b->o->of);
	b->r->of_unreached = b->tree.place[block] == INDEX_NONE;
	return b->r->of_unreached ? 0 : add_block(b, b->tree.place[block]);
}

/* ------------------------------------------------------------- all of it -- */

static int make_graph(struct builder *b, const struct census *c, struct mp_err *err)
{
	struct coverage cover;
	int ret = graph_take(&b->graph, b->img, c, true, &cover, err);

	b->r->roots = b->graph.roots.n;
	b->r->edges = b->graph.to.n;
	b->r->unreadable_bytes = b->graph.unreadable_bytes;
	return ret;
}

static void count_threads(struct builder *b)
{
	b->r->threads = (uint32_t)b->img->threads.n;
	vec_for_each (&b->holders.frames.extents, e)
		b->r->unwound += e->complete;
}

static void sum_up(struct builder *b)
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

static int make_lines(struct builder *b, struct mp_err *err)
{
	uint64_t start = cpu_ns();
	int ret = note_shared(b);

	dominators_settle(&b->tree);
	if (!ret && b->o->line_of) {
		b->r->line_of = calloc(b->graph.n + 1ull, sizeof(*b->r->line_of));
		ret = b->r->line_of ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = b->o->of ? add_asked(b, err) : add_roots(b);
	if (!ret)
		sum_up(b);
	b->r->lines_ns = cpu_ns() - start;
	return ret;
}

static int name_blocks(struct builder *b)
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

static int build(struct builder *b, const struct census *c, struct mp_err *err)
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
	b->r->all = line_new(RETAINED_ALL);
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
	struct builder b = {.r = r, .o = o, .img = img};
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
	line_free(r->all);
	vec_for_each (&r->path, l)
		line_free(*l);
	vec_free(&r->path);
	free(r->line_of);
	block_notes_free(&r->notes);
	memset(r, 0, sizeof(*r));
}
