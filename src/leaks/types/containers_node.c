/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Containers of the C++ standard library that have a block for each element: list, map, set,
 * unordered_map and so on.  All nodes are collected before any is claimed: only if each is a block of
 * the right size, and there are as many as the container says, it is one.
 */
#include <stddef.h>
#include <stdlib.h>
#include "heaps/chain.h"
#include "leaks/types/containers.h"

/* Sets where the value is in a node that begins with @header bytes.  Return: false if the type of the
 * value is not known. */
static bool lay_out_node(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l,
			 uint64_t header)
{
	l->value = dwarf_value(w, t);
	if (!l->value)
		return false;
	dwarf_type_complete(w->types, l->value);
	l->size = l->value->size;
	l->value_offset = (header + l->value->align - 1) / l->value->align * l->value->align;
	l->node_size = l->value_offset + l->size;
	l->id_of[0] = dwarf_name(w, "node of ", t->name, "", NULL);
	return true;
}

/* Adds the node at @addr.  Return: false if it cannot be one. */
static bool collect(struct dwarf_walk *w, const struct dwarf_layout *l, struct dwarf_nodes *nodes,
		    uint64_t addr)
{
	const uint32_t block = dwarf_block(w, addr, l->node_size);

	if (block == INDEX_NONE || dwarf_claimed(w, block) ||
	    !dwarf_may_fit(l->node_size, w->g->block[block].size))
		return false;
	if (vec_push(&nodes->list, block)) {
		w->no_memory = true;
		return false;
	}
	return true;
}

/* Collects the nodes from @first on, which have the next one's address at @next, until @last, but at
 * most @most.  Return: false if one cannot be a node. */
static bool collect_chain(struct dwarf_walk *w, const struct dwarf_layout *l,
			  struct dwarf_nodes *nodes, uint64_t first, uint64_t next, uint64_t last,
			  uint64_t most)
{
	struct chain chain = {0};

	for (uint64_t at = first; at != last;) {
		if (nodes->list.n == most || dwarf_late(w) || chain_cycles(&chain, at) ||
		    !collect(w, l, nodes, at) || !dwarf_word(w, at + next, &at))
			return false;
	}
	return true;
}

/* Claims the nodes and adds the container, unless it was found @good.  Frees the nodes. */
static void claim_nodes(struct dwarf_walk *w, const struct dwarf_layout *l,
			struct dwarf_nodes *nodes, bool good, struct container *c)
{
	if (nodes->list.n && !c->first)
		c->first = w->g->block[nodes->list.at[0]].addr;
	good = good && dwarf_claim_nodes(w, l, nodes, l->id_of[0], c);
	if (good)
		dwarf_add(w, l, c);
	else
		w->broken++;
	vec_free(&nodes->list);
}

/* ------------------------------------------------------------- list -- */

enum { NEXT, COUNT, HEADER };

static bool know_list(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_impl._M_node._M_next", "_M_impl._M_node._M_size",
					  "_M_impl._M_node"},
				 *const llvm[] = {"__end_.__next_", "__size_alloc_.__value_",
						  "__end_"};

	return dwarf_is_std(t, "list") &&
	       (dwarf_paths(w, t, gnu, 3, l->at, NULL) ||
		dwarf_paths(w, t, llvm, 3, l->at, NULL)) &&
	       lay_out_node(w, t, l, 2 * (uint64_t)w->word);
}

static bool take_list(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	struct dwarf_nodes nodes = {0};
	uint64_t p[2];
	bool good;

	if (!dwarf_words(w, addr, l, 2, p))
		return true;
	c.elements = p[COUNT];
	good = collect_chain(w, l, &nodes, p[NEXT], l->at[NEXT] - l->at[HEADER],
			     addr + l->at[HEADER], p[COUNT]) &&
	       nodes.list.n == p[COUNT];
	claim_nodes(w, l, &nodes, good, &c);
	return true;
}

const struct dwarf_container container_list = {know_list, take_list, NULL};

/* ------------------------------------------------------------- map, set -- */

enum { ROOT, TREE_COUNT, LEFT, RIGHT };

static bool know_tree(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {
	    "_M_t._M_impl._M_header._M_parent", "_M_t._M_impl._M_node_count",
	    "_M_t._M_impl._M_header._M_left", "_M_t._M_impl._M_header._M_right",
	    "_M_t._M_impl._M_header"};
	static const char *const llvm[] = {"__tree_.__pair1_.__value_.__left_",
					   "__tree_.__pair3_.__value_"};
	struct dwarf_type *header, *root;

	if (!dwarf_is_std(t, "map") && !dwarf_is_std(t, "set") && !dwarf_is_std(t, "multimap") &&
	    !dwarf_is_std(t, "multiset"))
		return false;
	if (dwarf_paths(w, t, gnu, 5, l->at, NULL)) {
		header = dwarf_type_member(w->types, t, gnu[4], &l->at[4]);
		l->at[LEFT] -= l->at[4];
		l->at[RIGHT] -= l->at[4];
		return lay_out_node(w, t, l, header->size);
	}
	if (!dwarf_paths(w, t, llvm, 2, l->at, &root))
		return false;
	/* libc++ 14, <__tree>: left, right, parent, then a bool. */
	l->at[LEFT] = 0;
	l->at[RIGHT] = w->word;
	return lay_out_node(w, t, l, 3 * (uint64_t)w->word + 1);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Adds the children of a node, to at most @most nodes.  Return: false if one cannot be a node. */
static bool collect_children(struct dwarf_walk *w, const struct dwarf_layout *l,
			     struct dwarf_nodes *nodes, uint32_t block, uint64_t most)
{
	const uint64_t node = w->g->block[block].addr;
	uint64_t child;

	for (int side = LEFT; side <= RIGHT; side++) {
		if (dwarf_late(w) || !dwarf_word(w, node + l->at[side], &child))
			return false;
		if (child && (nodes->list.n >= most || !collect(w, l, nodes, child)))
			return false;
	}
	return true;
}

static bool take_tree(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	struct dwarf_nodes nodes = {0};
	size_t level = 0;
	uint64_t p[2];
	bool good;

	if (!dwarf_words(w, addr, l, 2, p))
		return true;
	c.elements = p[TREE_COUNT];
	good = !p[ROOT] || collect(w, l, &nodes, p[ROOT]);
	/* Level by level, each in order of address: most of a large tree is in the last few. */
	while (good && level < nodes.list.n) {
		const size_t end = nodes.list.n;

		qsort(nodes.list.at + level, end - level, sizeof(nodes.list.at[0]), by_number);
		for (; level < end && good; level++)
			good = collect_children(w, l, &nodes, nodes.list.at[level], p[TREE_COUNT]);
	}
	claim_nodes(w, l, &nodes, good && nodes.list.n == p[TREE_COUNT], &c);
	return true;
}

const struct dwarf_container container_tree = {know_tree, take_tree, NULL};

/* ------------------------------------------------------------- unordered -- */

enum { BUCKETS, BUCKET_COUNT, FIRST, HASH_COUNT, SINGLE };

static bool know_hash(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_h._M_buckets", "_M_h._M_bucket_count",
					  "_M_h._M_before_begin._M_nxt", "_M_h._M_element_count",
					  "_M_h._M_single_bucket"};
	static const char *const llvm[] = {
	    "__table_.__bucket_list_.__ptr_.__value_",
	    "__table_.__bucket_list_.__ptr_.#1.__value_.__data_.__value_",
	    "__table_.__p1_.__value_.__next_", "__table_.__p2_.__value_"};

	if (!dwarf_is_std(t, "unordered_map") && !dwarf_is_std(t, "unordered_set") &&
	    !dwarf_is_std(t, "unordered_multimap") && !dwarf_is_std(t, "unordered_multiset"))
		return false;
	l->id_of[1] = dwarf_name(w, "buckets of ", t->name, "", NULL);
	l->flag = dwarf_paths(w, t, gnu, 5, l->at, NULL);
	if (l->flag)
		return lay_out_node(w, t, l, w->word);
	/* libc++ 14, <__hash_table>: the next node, and the hash. */
	return dwarf_paths(w, t, llvm, 4, l->at, NULL) &&
	       lay_out_node(w, t, l, 2 * (uint64_t)w->word);
}

static bool take_hash(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	struct dwarf_nodes nodes = {0};
	uint32_t table = INDEX_NONE;
	uint64_t p[4];
	bool good = true, has_table;

	if (!dwarf_words(w, addr, l, 4, p))
		return true;
	/* A table of one bucket can be in the object. */
	has_table = p[BUCKETS] && !(l->flag && p[BUCKETS] == addr + l->at[SINGLE]);
	if (has_table) {
		table = p[BUCKET_COUNT] > (uint64_t)1 << 40
			    ? INDEX_NONE
			    : dwarf_block(w, p[BUCKETS], p[BUCKET_COUNT] * w->word);
		good = table != INDEX_NONE && !dwarf_claimed(w, table);
	}
	c.elements = p[HASH_COUNT];
	c.buckets = p[BUCKET_COUNT];
	good = good && collect_chain(w, l, &nodes, p[FIRST], 0, 0, p[HASH_COUNT]) &&
	       nodes.list.n == p[HASH_COUNT];
	if (good && table != INDEX_NONE) {
		(void)dwarf_claim(w, table, l->id_of[1]);
		c.first = p[BUCKETS];
		c.blocks = 1;
		c.bytes = w->g->block[table].size;
	}
	claim_nodes(w, l, &nodes, good, &c);
	return true;
}

const struct dwarf_container container_hash = {know_hash, take_hash, NULL};
