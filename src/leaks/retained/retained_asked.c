/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained_builder.h"

#include <errno.h>
#include <stdlib.h>

/* The lines from a root to the block at @place.  A block of the same kind as the one before is on
 * the same line. */
static int make_path(struct retained_builder *b, uint32_t place)
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
		l = retained_line_new(is_block(b, at) ? RETAINED_BLOCKS : RETAINED_HOLDER);
		if (!l || vec_push(&b->r->path, l)) {
			retained_line_free(l);
			return -ENOMEM;
		}
		l->bytes = t->bytes[at];
		l->exact = t->exact[at];
		l->blocks = retained_blocks_in(b, at);
		l->count = is_block(b, at);
		ret = is_block(b, at) ? retained_describe(b, l, at)
				      : retained_name_holder(b, l, t->node[at] - t->blocks);
	}
	return ret;
}

static int add_block(struct retained_builder *b, uint32_t place)
{
	struct retained_group g = {.bytes = b->tree.bytes[place],
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
		ret = retained_add_group(b, b->r->all, &g, 0);
	vec_free(&g.members.list);
	return ret;
}

/* Adds the variables called @name.  Return: their number, or -ENOMEM. */
static int add_variables(struct retained_builder *b, const char *name)
{
	int found = 0, ret = 0;

	for (uint32_t i = 0; i < b->holders.list.n && !ret; i++) {
		if (!holder_is(&b->holders, i, name))
			continue;
		found++;
		ret = retained_add_root(b, b->tree.place[b->tree.blocks + i], false);
	}
	return ret ? ret : found;
}

/* Return: the number of the block that the text is an address in, or INDEX_NONE. */
static uint32_t block_called(const struct retained_builder *b, const char *text)
{
	char *end;
	uint64_t addr;

	errno = 0;
	addr = strtoull(text, &end, 16);
	if (errno || end == text || *end || !b->graph.n)
		return INDEX_NONE;
	return index_search(&b->graph.index, addr);
}

int retained_add_asked(struct retained_builder *b, struct mp_err *err)
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
