/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t retained_blocks_in(const struct retained_builder *b, uint32_t place)
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

int retained_name_holder(const struct retained_builder *b, struct retained_line *l, uint32_t holder)
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
	return it->addr ? retained_note_container(b, l, it->addr, it->size) : 0;
}

static int add_below(struct retained_builder *b, struct retained_line *l, uint32_t place)
{
	struct retained_places above = {0};

	return vec_push(&above.list, place)
		   ? -ENOMEM
		   : retained_add_lines(b, l, &above, BLOCK_NAMES_KEY_NONE, 0);
}

/* Sums up the blocks directly below @place. */
static void sum_shared(const struct retained_builder *b, uint32_t place, struct retained_line *sum)
{
	for (uint32_t c = place + 1; c < place + b->tree.count[place]; c += b->tree.count[c]) {
		if (!is_block(b, c))
			continue;
		sum->bytes += b->tree.bytes[c];
		sum->exact += b->tree.exact[c];
		sum->blocks += b->tree.count[c];
	}
}

int retained_add_root(struct retained_builder *b, uint32_t place, bool shared)
{
	const uint32_t node = b->tree.node[place];
	struct retained_line *l = retained_line_new(shared ? RETAINED_SHARED : RETAINED_HOLDER);
	int ret = 0;

	if (!l)
		return -ENOMEM;
	if (place)
		ret = retained_name_holder(b, l, node - b->tree.blocks);
	else
		l->name = strdup("several roots");
	if (!shared) {
		l->bytes = b->tree.bytes[place];
		l->exact = b->tree.exact[place];
		l->blocks = retained_blocks_in(b, place);
	}
	if (shared)
		sum_shared(b, place, l);
	if (ret || !l->name) {
		retained_line_free(l);
		return -ENOMEM;
	}
	retained_line_insert(b->r->all, l);
	return add_below(b, l, place);
}

bool retained_is_group(const struct retained_builder *b, uint32_t place)
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
static int list_roots(const struct retained_builder *b, struct candidates *roots)
{
	for (uint32_t p = 0; p < b->tree.n;
	     p += retained_is_group(b, p) || !is_block(b, p) ? 1 : b->tree.count[p]) {
		struct candidate it = {.place = p, .shared = retained_is_group(b, p)};

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

int retained_add_roots(struct retained_builder *b)
{
	struct retained_line *rest = retained_line_new(RETAINED_REST);
	struct candidates roots = {0};
	int ret = rest ? list_roots(b, &roots) : -ENOMEM;

	vec_sort(&roots.list, most_bytes);
	for (size_t i = 0; i < roots.list.n && !ret; i++) {
		const struct candidate *it = &roots.list.at[i];

		if (i < b->o->count) {
			ret = retained_add_root(b, it->place, it->shared);
			continue;
		}
		rest->count++;
		rest->bytes += it->sum.bytes;
		rest->blocks += it->shared ? it->sum.blocks : retained_blocks_in(b, it->place);
		rest->exact += it->shared ? it->sum.exact : b->tree.exact[it->place];
	}
	vec_free(&roots.list);
	if (rest && rest->count)
		retained_line_insert(b->r->all, rest);
	else
		free(rest);
	return ret;
}
