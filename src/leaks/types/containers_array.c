/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Containers of the C++ standard library that keep elements in arrays: vector, string, deque. */
#include <stddef.h>
#include "leaks/types/containers.h"

/* ------------------------------------------------------------- vector -- */

enum { BEGIN, END, CAPACITY };

static bool know_vector(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_impl._M_start", "_M_impl._M_finish",
					  "_M_impl._M_end_of_storage"},
				 *const llvm[] = {"__begin_", "__end_", "__end_cap_.__value_"};
	struct dwarf_type *start;

	if (!dwarf_is_std(t, "vector") || (!dwarf_paths(w, t, gnu, 3, l->at, &start) &&
					   !dwarf_paths(w, t, llvm, 3, l->at, &start)))
		return false;
	if (start->kind != DWARF_POINTER || !start->target->size)
		return false;
	l->value = start->target;
	l->size = l->value->size;
	l->id_of[0] = dwarf_name(w, "array of ", t->name, "", NULL);
	return true;
}

/* Claims the block of an array of @size bytes, 0: not known, and adds it to @c.  Return: its number; INDEX_NONE: there is none that
 * can be it. */
static uint32_t claim_array(struct dwarf_walk *w, uint64_t addr, uint64_t size, uint32_t id,
			    struct container *c)
{
	const uint32_t block = dwarf_block(w, addr, size);

	if (block == INDEX_NONE || (size && !dwarf_may_fit(size, w->g->block[block].size)) ||
	    !dwarf_claim(w, block, id))
		return INDEX_NONE;
	if (!c->first)
		c->first = addr;
	c->blocks++;
	c->bytes += w->g->block[block].size;
	return block;
}

static bool take_vector(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	uint64_t p[3];
	uint32_t block;

	if (!dwarf_words(w, addr, l, 3, p))
		return true;
	if (p[BEGIN] > p[END] || p[END] > p[CAPACITY] || (p[END] - p[BEGIN]) % l->size ||
	    (!p[BEGIN] && p[CAPACITY])) {
		w->broken++;
		return true;
	}
	if (p[BEGIN]) {
		block = claim_array(w, p[BEGIN], p[CAPACITY] - p[BEGIN], l->id_of[0], &c);
		if (block == INDEX_NONE) {
			w->broken++;
			return true;
		}
		c.elements = (p[END] - p[BEGIN]) / l->size;
		c.unused = p[CAPACITY] - p[END];
		dwarf_wait(w, block, l->value, 0, 0, c.elements);
	}
	dwarf_add(w, l, &c);
	return true;
}

const struct dwarf_container container_vector = {know_vector, take_vector, NULL};

/* ------------------------------------------------------------- vector<bool> -- */

enum { BITS_BEGIN, BITS_END, BITS_CAPACITY, BITS_REST };

static bool know_bits(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_impl._M_start._M_p", "_M_impl._M_finish._M_p",
					  "_M_impl._M_end_of_storage",
					  "_M_impl._M_finish._M_offset"},
				 *const llvm[] = {"__begin_", "__size_", "__cap_alloc_.__value_"};

	if (!dwarf_is_std(t, "vector"))
		return false;
	l->flag = dwarf_paths(w, t, gnu, 4, l->at, NULL);
	if (!l->flag && !dwarf_paths(w, t, llvm, 3, l->at, NULL))
		return false;
	l->id_of[0] = dwarf_name(w, "array of ", t->name, "", NULL);
	return true;
}

static bool take_bits(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	uint64_t p[3], rest = 0, capacity;

	if (!dwarf_words(w, addr, l, 3, p))
		return true;
	if (l->flag && !dwarf_memory_number(w->memory, addr + l->at[BITS_REST], 4, &rest))
		return true;
	/* libc++ has the number of bits and that of words. */
	c.elements = l->flag ? (p[BITS_END] - p[BITS_BEGIN]) * 8 + rest : p[BITS_END];
	capacity = l->flag ? p[BITS_CAPACITY] - p[BITS_BEGIN] : p[BITS_CAPACITY] * w->word;
	if (p[BITS_BEGIN]) {
		if (c.elements / 8 > capacity ||
		    claim_array(w, p[BITS_BEGIN], capacity, l->id_of[0], &c) == INDEX_NONE) {
			w->broken++;
			return true;
		}
		c.unused = capacity - (c.elements + 7) / 8;
	} else if (c.elements) {
		return true;
	}
	dwarf_add(w, l, &c);
	return true;
}

const struct dwarf_container container_bits = {know_bits, take_bits, NULL};

/* ------------------------------------------------------------- string -- */

enum { TEXT, LENGTH, ROOM, LOCAL };

static bool know_string(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_dataplus._M_p", "_M_string_length",
					  "_M_allocated_capacity", "_M_local_buf"},
				 *const llvm[] = {"__r_.__value_.__l.__data_",
						  "__r_.__value_.__l.__size_",
						  "__r_.__value_.__l.__cap_"};
	struct dwarf_type *text;

	if (!dwarf_is_std(t, "basic_string"))
		return false;
	l->flag = dwarf_paths(w, t, gnu, 4, l->at, &text);
	if (!l->flag) {
		/* From version 15 on the capacity is a bit field, in the word that the others leave.
		 */
		if (!dwarf_paths(w, t, llvm, 2, l->at, &text))
			return false;
		if (!dwarf_type_member(w->types, t, llvm[ROOM], &l->at[ROOM]))
			l->at[ROOM] = l->at[TEXT] ? 0 : 2 * (uint64_t)w->word;
	}
	if (text->kind != DWARF_POINTER || !text->target->size)
		return false;
	l->size = text->target->size;
	l->id_of[0] = dwarf_name(w, "text of ", t->name, "", NULL);
	l->id_of[1] = dwarf_name(w, t->name, " with its text in the object", "", NULL);
	return true;
}

/* libc++ 14, <string>: a bit of the first or last byte tells long ones from short ones, whose length
 * is in the other bits.  Sets *@room, without that bit.  Return: the length of a short one, or -1. */
static int short_length(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l,
			uint64_t *room)
{
	const bool first = !l->at[ROOM], little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	const uint64_t low = 1, high = (uint64_t)1 << (8 * w->word - 1);
	uint64_t byte = 0;
	bool is_long;

	(void)dwarf_memory_number(w->memory, first ? addr : addr + l->type->size - 1, 1, &byte);
	/* The bit is the lowest one of the first byte or of the last one in the order of bytes. */
	is_long = *room & (first == little ? low : high);
	*room &= ~(first == little ? low : high);
	return is_long ? -1 : (int)(first == little ? byte >> 1 : byte);
}

static bool take_string(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct dwarf_layout in_object = *l;
	struct container c = {.addr = addr};
	uint64_t p[3];
	int length = -1;
	bool local;

	if (!dwarf_words(w, addr, l, 3, p))
		return true;
	if (l->flag)
		local = p[TEXT] == addr + l->at[LOCAL];
	else
		local = (length = short_length(w, addr, l, &p[ROOM])) >= 0;
	in_object.id = l->id_of[1];
	if (local) {
		c.elements = l->flag ? p[LENGTH] : (uint64_t)length;
		if (c.elements * l->size < l->type->size)
			dwarf_add(w, &in_object, &c);
		else
			w->broken++;
		return true;
	}
	/* libstdc++ has the room without the final NUL, libc++ with it. */
	p[ROOM] += l->flag;
	if (p[LENGTH] >= p[ROOM] || p[ROOM] > (uint64_t)1 << 40 ||
	    claim_array(w, p[TEXT], p[ROOM] * l->size, l->id_of[0], &c) == INDEX_NONE) {
		w->broken++;
		return true;
	}
	c.elements = p[LENGTH];
	c.unused = (p[ROOM] - 1 - p[LENGTH]) * l->size;
	dwarf_add(w, l, &c);
	return true;
}

const struct dwarf_container container_string = {know_string, take_string, NULL};

/* ------------------------------------------------------------- deque -- */

enum { MAP, MAP_SIZE, FIRST_AT, FIRST_END, FIRST_CHUNK, LAST_AT, LAST_START, LAST_CHUNK };
enum { BUFFER, CHUNKS, CHUNKS_END, START, SIZE, BUFFER_END };

static bool know_deque(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const gnu[] = {"_M_impl._M_map",
					  "_M_impl._M_map_size",
					  "_M_impl._M_start._M_cur",
					  "_M_impl._M_start._M_last",
					  "_M_impl._M_start._M_node",
					  "_M_impl._M_finish._M_cur",
					  "_M_impl._M_finish._M_first",
					  "_M_impl._M_finish._M_node"};
	static const char *const llvm[] = {"__map_.__first_",  "__map_.__begin_",
					   "__map_.__end_",    "__start_",
					   "__size_.__value_", "__map_.__end_cap_.__value_"};
	struct dwarf_type *map;

	if (!dwarf_is_std(t, "deque"))
		return false;
	l->flag = dwarf_paths(w, t, gnu, 8, l->at, &map);
	if (!l->flag && !dwarf_paths(w, t, llvm, 6, l->at, &map))
		return false;
	if (map->kind != DWARF_POINTER || map->target->kind != DWARF_POINTER ||
	    !map->target->target->size)
		return false;
	l->value = map->target->target;
	l->size = l->value->size;
	/* Elements of a chunk: libstdc++'s _S_buffer_size(), libc++'s __deque_block_size. */
	if (l->flag)
		l->node_size = l->size < 512 ? 512 / l->size : 1;
	else
		l->node_size = l->size < 256 ? 4096 / l->size : 16;
	l->id_of[0] = dwarf_name(w, "map of ", t->name, "", NULL);
	l->id_of[1] = dwarf_name(w, "chunk of ", t->name, "", NULL);
	return true;
}

/* Where the elements of a deque are. */
struct deque_place {
	uint64_t map, map_size;	     /* its array of chunks, with unused places */
	uint64_t chunks, chunks_end; /* places of the used chunks */
	uint64_t first, n;	     /* in the first chunk: elements before the first one */
};

static bool place_deque(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l,
			struct deque_place *d)
{
	const uint64_t room = l->node_size * l->size;
	uint64_t p[8], chunks;

	if (!dwarf_words(w, addr, l, l->flag ? 8 : 6, p))
		return false;
	if (!l->flag) {
		*d = (struct deque_place){p[BUFFER], p[BUFFER_END] - p[BUFFER],
					  p[CHUNKS], p[CHUNKS_END],
					  p[START],  p[SIZE]};
		chunks = d->chunks_end - d->chunks;
		return p[CHUNKS] >= p[BUFFER] && p[CHUNKS_END] >= p[CHUNKS] &&
		       p[BUFFER_END] >= p[CHUNKS_END] && p[START] <= UINT32_MAX &&
		       p[SIZE] <= UINT32_MAX &&
		       p[START] + p[SIZE] <= chunks / w->word * l->node_size;
	}
	*d = (struct deque_place){.map = p[MAP],
				  .map_size = p[MAP_SIZE] * w->word,
				  .chunks = p[FIRST_CHUNK],
				  .chunks_end = p[LAST_CHUNK] + w->word};
	if (p[MAP_SIZE] > UINT32_MAX || p[FIRST_CHUNK] < p[MAP] || p[LAST_CHUNK] < p[FIRST_CHUNK] ||
	    d->chunks_end - p[MAP] > d->map_size || p[FIRST_AT] > p[FIRST_END] ||
	    p[FIRST_END] - p[FIRST_AT] > room || p[LAST_AT] < p[LAST_START] ||
	    p[LAST_AT] - p[LAST_START] > room)
		return false;
	chunks = (p[LAST_CHUNK] - p[FIRST_CHUNK]) / w->word;
	d->first = l->node_size - (p[FIRST_END] - p[FIRST_AT]) / l->size;
	d->n = chunks * l->node_size + (p[LAST_AT] - p[LAST_START]) / l->size;
	if (d->n < d->first)
		return false;
	d->n -= d->first;
	return true;
}

/* Return: false if a chunk cannot be what it should be, or was claimed before. */
static bool check_chunks(struct dwarf_walk *w, const struct dwarf_layout *l,
			 const struct deque_place *d)
{
	uint64_t chunk;

	for (uint64_t at = d->chunks; at < d->chunks_end; at += w->word) {
		uint32_t block;

		if (!dwarf_word(w, at, &chunk))
			return false;
		block = dwarf_block(w, chunk, l->node_size * l->size);
		if (block == INDEX_NONE || dwarf_claimed(w, block))
			return false;
	}
	return true;
}

static bool take_deque(struct dwarf_walk *w, uint64_t addr, const struct dwarf_layout *l)
{
	struct container c = {.addr = addr};
	struct deque_place d;
	uint64_t chunk, left, from;

	if (!place_deque(w, addr, l, &d))
		return true;
	if (!d.map && !d.n) {
		dwarf_add(w, l, &c);
		return true;
	}
	if (!check_chunks(w, l, &d) ||
	    claim_array(w, d.map, d.map_size, l->id_of[0], &c) == INDEX_NONE) {
		w->broken++;
		return true;
	}
	c.elements = left = d.n;
	from = d.first;
	for (uint64_t at = d.chunks; at < d.chunks_end; at += w->word) {
		const uint64_t n = left < l->node_size - from ? left : l->node_size - from;
		uint32_t block = INDEX_NONE;

		if (dwarf_word(w, at, &chunk))
			block = claim_array(w, chunk, 0, l->id_of[1], &c);
		if (block == INDEX_NONE)
			break;
		dwarf_wait(w, block, l->value, 0, from, n);
		c.unused += (l->node_size - n) * l->size;
		left -= n;
		from = 0;
	}
	dwarf_add(w, l, &c);
	return true;
}

const struct dwarf_container container_deque = {know_deque, take_deque, NULL};
