/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heap walker for musl's mallocng (musl 1.2.1 and newer).
 *
 * Layout: src/malloc/mallocng/meta.h of musl 1.2.3, unchanged since 1.2.1.  A context in libc's
 * .bss begins with a secret; pages of 4 KiB that repeat it ("meta areas") have the descriptors
 * ("meta") of all groups of slots.  A slot is live if its bit is neither in avail_mask nor in
 * freed_mask.  A group can be in a slot of a larger class: that slot is the allocator's own.  The
 * context counts the slots of every class.  Descriptors are free, not yet used, or point to a group
 * that points back.  All of these must add up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/chain.h"
#include "heaps/musl/musl.h"
#include "heaps/scan.h"
#include "heaps/walker.h"

#define UNIT	   16 /* bytes: alignment, and the unit of size classes */
#define IN_BAND	   4  /* last bytes of a slot that are not usable: the next slot's header */
#define AREA_SIZE  4096
#define CLASSES	   48
#define CLASS_MMAP 63 /* one block in its own mapping */

static const uint16_t class_units[CLASSES] = {
    1,	 2,   3,   4,	 5,    6,    7,	   8,	 9,    10,   12,   15,	 18,   20,   25,   31,
    36,	 42,  50,  63,	 72,   84,   102,  127,	 146,  170,  204,  255,	 292,  340,  409,  511,
    584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct meta {
	uint64_t prev, next, mem;
	int32_t avail_mask, freed_mask;
	uint64_t bits; /* last_idx:5 freeable:1 sizeclass:6 maplen:52 */
};
_Static_assert(sizeof(struct meta) == 40, "as in musl");

struct ng_area {
	uint64_t check, next;
	int32_t slots, pad;
	struct meta meta[(AREA_SIZE - 24) / sizeof(struct meta)];
};

/* struct malloc_context; a page size, if it is not a constant, follows the secret. */
struct ng_context {
	uint64_t secret;
	int32_t init_done;
	uint32_t mmap_counter;
	uint64_t free_meta, avail_meta, avail_meta_count, avail_area_count, alloc_shift;
	uint64_t area_head, area_tail, avail_areas;
	uint64_t active[CLASSES], usage[CLASSES];
};

struct ng_group {
	uint64_t meta; /* address of the descriptor */
	struct meta m;
};

struct ng_walk {
	struct image *img;
	struct heap *heap;
	struct image_view view;
	struct ng_context ctx;
	VEC(struct ng_group) groups;
	uint64_t slots[CLASSES];
	uint64_t metas, idle_metas;
	uint32_t unsettled; /* slots that a thread is just allocating or freeing */
};

static unsigned last_index(const struct meta *m)
{
	return m->bits & 31;
}

static bool freeable(const struct meta *m)
{
	return m->bits >> 5 & 1;
}

static unsigned size_class(const struct meta *m)
{
	return m->bits >> 6 & 63;
}

static uint64_t mapped_bytes(const struct meta *m)
{
	return (m->bits >> 12) * 4096;
}

static uint64_t stride(const struct meta *m)
{
	if (!last_index(m) && mapped_bytes(m))
		return mapped_bytes(m) - UNIT;
	return (uint64_t)UNIT * class_units[size_class(m)];
}

static bool valid_area(struct image *img, uint64_t addr, uint64_t secret)
{
	uint64_t word;

	return addr && addr % AREA_SIZE == 0 && image_word(img, addr, &word) && word == secret;
}

/* Is there a context at @w, with or without a page size after the secret? */
static bool valid_context(struct image *img, const uint64_t *w, bool has_page_size,
			  struct ng_context *ctx)
{
	if (!w[0] || (int32_t)w[1 + has_page_size] != 1)
		return false;
	ctx->secret = w[0];
	memcpy(&ctx->init_done, w + 1 + has_page_size, sizeof(*ctx) - sizeof(ctx->secret));
	return valid_area(img, ctx->area_head, ctx->secret) &&
	       valid_area(img, ctx->area_tail, ctx->secret);
}

static int find_context(const struct scan_data *data, void *arg)
{
	const size_t need = sizeof(struct ng_context) / 8 + 1;
	struct ng_walk *w = arg;

	for (size_t i = 0; i + need <= data->n; i++) {
		if (valid_context(data->img, data->words + i, false, &w->ctx) ||
		    valid_context(data->img, data->words + i, true, &w->ctx))
			return 1;
	}
	return 0;
}

/* Do size class, number of slots and length of the mapping fit each other and the maps? */
static bool plausible(struct ng_walk *w, const struct meta *m)
{
	uint64_t bytes = mapped_bytes(m);

	if (bytes && !scan_all_writable(w->img, m->mem, m->mem + bytes))
		return false;
	if (size_class(m) == CLASS_MMAP)
		return bytes && !last_index(m);
	if (size_class(m) >= CLASSES)
		return false;
	return !bytes || UNIT + (last_index(m) + 1) * stride(m) <= bytes;
}

enum group_state { GROUP_VALID, GROUP_IN_TRANSIT, GROUP_DAMAGED };

/* The group's link back is set after the descriptor and cleared before it.  realloc() moves a
 * block's mapping before it updates the descriptor. */
static enum group_state group_state(struct ng_walk *w, uint64_t meta, const struct meta *m)
{
	uint64_t back;

	if (m->mem % UNIT)
		return GROUP_DAMAGED;
	if (!image_word(w->img, m->mem, &back))
		return size_class(m) == CLASS_MMAP ? GROUP_IN_TRANSIT : GROUP_DAMAGED;
	if (!back)
		return GROUP_IN_TRANSIT;
	if (back != meta)
		return GROUP_DAMAGED;
	if (plausible(w, m))
		return GROUP_VALID;
	return size_class(m) == CLASS_MMAP ? GROUP_IN_TRANSIT : GROUP_DAMAGED;
}

static int take_meta(struct ng_walk *w, uint64_t addr, const struct meta *m)
{
	struct ng_group g = {addr, *m};

	w->metas++;
	if (!m->mem) {
		w->idle_metas++;
		return 0;
	}
	switch (group_state(w, addr, m)) {
	case GROUP_VALID:
		return vec_push(&w->groups, g);
	case GROUP_IN_TRANSIT:
		w->unsettled++;
		return 0;
	default:
		heap_damage(w->heap, addr, "group descriptor and group disagree");
		heap_doubt(w->heap, "a group descriptor is damaged");
		return 0;
	}
}

static int take_area(struct ng_walk *w, uint64_t addr, const struct ng_area *a)
{
	int ret = 0;

	for (int i = 0; !ret && i < a->slots; i++)
		ret = take_meta(w, addr + offsetof(struct ng_area, meta) + i * sizeof(a->meta[0]),
				&a->meta[i]);
	return ret;
}

static int take_areas(struct ng_walk *w)
{
	uint64_t at = w->ctx.area_head;
	struct chain c = {0};
	const int max_slots = sizeof(((struct ng_area *)0)->meta) / sizeof(struct meta);
	struct ng_area a;
	int ret;

	for (; at; at = a.next) {
		if (at % AREA_SIZE || !image_read_all(w->img, at, &a, sizeof(a)) ||
		    a.check != w->ctx.secret || a.slots < 0 || a.slots > max_slots ||
		    chain_cycles(&c, at)) {
			heap_damage(w->heap, at, "page of group descriptors is damaged");
			heap_doubt(w->heap, "the list of group descriptors is cut short");
			return 0;
		}
		ret = heap_own(w->heap, at, at + AREA_SIZE, HEAP_METADATA);
		if (!ret)
			ret = take_area(w, at, &a);
		if (ret)
			return ret;
		w->heap->metadata_bytes += AREA_SIZE;
	}
	return 0;
}

static int by_mem(const void *a, const void *b)
{
	const struct ng_group *x = a, *y = b;

	return x->m.mem < y->m.mem ? -1 : x->m.mem > y->m.mem;
}

/* Reads small slots through a window; of large ones only the bytes needed. */
static bool read_near(struct ng_walk *w, uint64_t stride_bytes, uint64_t addr, void *to, size_t len)
{
	const void *p;

	if (stride_bytes > 4096)
		return image_read_all(w->img, addr, to, len);
	p = image_view(w->img, &w->view, addr, len);
	if (p)
		memcpy(to, p, len);
	return p;
}

/*
 * The user's address in a slot that begins at @start: the start, or shifted by an offset in the
 * header there (to cycle through a slot, or to align).  An offset of more than 16 bits is truncated
 * there, but complete in the block's own header.  Return: 0 if the slot is in transit: no block was
 * laid out in it yet.
 */
static uint64_t user_address(struct ng_walk *w, uint64_t stride_bytes, uint64_t start,
			     uint8_t head[4])
{
	uint64_t at;
	uint8_t far[8];
	uint16_t shift;

	if (!read_near(w, stride_bytes, start - 4, head, 4))
		return 0;
	if (head[1] >> 5 != 7)
		return start;
	memcpy(&shift, head + 2, 2);
	for (at = start + (uint64_t)UNIT * shift; at < start + stride_bytes; at += UNIT << 16) {
		if (at == start || !read_near(w, stride_bytes, at - 8, far, 8))
			continue;
		if (at - start < UNIT << 16 || far[4] == 1) {
			memcpy(head, far + 4, 4);
			return at;
		}
	}
	return 0;
}

/* Usable bytes: those of the slot minus the reserve after the request.  Small reserves are in the
 * header, others in the last word. */
static uint64_t nominal_size(struct ng_walk *w, uint64_t stride_bytes, uint64_t user, uint64_t end,
			     const uint8_t head[4])
{
	uint32_t reserved = head[1] >> 5;

	if (reserved == 5 && !read_near(w, stride_bytes, end - 4, &reserved, 4))
		return UINT64_MAX;
	return reserved > end - user || head[1] >> 5 == 7 ? UINT64_MAX : end - user - reserved;
}

static bool is_group(struct ng_walk *w, uint64_t user)
{
	size_t lo = 0, hi = w->groups.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (w->groups.at[mid].m.mem < user)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < w->groups.n && w->groups.at[lo].m.mem == user;
}

static int take_live_slot(struct ng_walk *w, const struct ng_group *g, unsigned i)
{
	uint64_t step = stride(&g->m), start = g->m.mem + UNIT + i * step;
	uint64_t end = start + step - IN_BAND, user, size;
	uint8_t head[4] = {0};

	user = user_address(w, step, start, head);
	if (user && is_group(w, user))
		return 0;
	size = user ? nominal_size(w, step, user, end, head) : UINT64_MAX;
	if (size == UINT64_MAX) {
		w->unsettled++;
		return heap_add(w->heap, start, step - IN_BAND);
	}
	if ((head[1] & 31) != i) {
		heap_damage(w->heap, user, "header names slot %u, but this is slot %u",
			    head[1] & 31, i);
		heap_doubt(w->heap, "a block's header names another slot");
	}
	return heap_add(w->heap, user, size);
}

static int own_group(struct ng_walk *w, const struct meta *m)
{
	uint64_t slots = last_index(m) + 1, end = m->mem + UNIT + slots * stride(m);

	w->heap->metadata_bytes += UNIT;
	if (size_class(m) == CLASS_MMAP)
		return heap_own(w->heap, m->mem, m->mem + mapped_bytes(m), HEAP_MMAPPED);
	w->slots[size_class(m)] += freeable(m) ? slots : 0;
	if (mapped_bytes(m))
		return heap_own(w->heap, m->mem, m->mem + mapped_bytes(m), HEAP_ARENA);
	/* The group is in a slot of another group, or in the ends of modules' pages that libc
	 * donated. */
	return freeable(m) ? 0 : heap_own(w->heap, m->mem, end, HEAP_ARENA);
}

static int take_group(struct ng_walk *w, const struct ng_group *g)
{
	uint32_t free_mask = (uint32_t)(g->m.avail_mask | g->m.freed_mask);
	int ret = own_group(w, &g->m);

	for (unsigned i = 0; !ret && i <= last_index(&g->m); i++) {
		if (free_mask >> i & 1)
			w->heap->free_bytes += stride(&g->m);
		else
			ret = take_live_slot(w, g, i);
	}
	return ret;
}

static uint64_t free_metas(struct ng_walk *w)
{
	uint64_t at = w->ctx.free_meta, n = 0;
	struct meta m;

	while (at && n <= w->metas && image_read_all(w->img, at, &m, sizeof(m))) {
		n++;
		at = m.next == w->ctx.free_meta ? 0 : m.next;
	}
	return n;
}

static void check_sums(struct ng_walk *w)
{
	struct heap *h = w->heap;

	h->checksum_known = true;
	h->exact = !h->doubt[0];
	for (int i = 0; i < CLASSES; i++) {
		if (w->slots[i] != w->ctx.usage[i])
			heap_doubt(h,
				   "slots of size class %d: %" PRIu64 ", its counter says %" PRIu64,
				   i, w->slots[i], w->ctx.usage[i]);
	}
	if (w->idle_metas != free_metas(w) + w->ctx.avail_meta_count)
		heap_doubt(
		    h, "unused group descriptors: %" PRIu64 ", the lists of free ones say %" PRIu64,
		    w->idle_metas, free_metas(w) + w->ctx.avail_meta_count);
	if (w->unsettled)
		heap_doubt_now(h, "%u block%s being allocated or freed", w->unsettled,
			       w->unsettled == 1 ? " was" : "s were");
}

static int walk_groups(struct ng_walk *w)
{
	int ret = take_areas(w);

	if (ret)
		return ret;
	vec_sort(&w->groups, by_mem);
	for (size_t i = 0; !ret && i < w->groups.n; i++)
		ret = take_group(w, &w->groups.at[i]);
	return ret;
}

int musl_ng_is_there(struct image *img)
{
	struct ng_walk w = {.img = img};

	return scan_modules(img, find_context, &w);
}

static int walk_mallocng(struct image *img, struct heap *heap, struct mp_err *err)
{
	struct ng_walk w = {.img = img, .heap = heap};
	int ret;

	ret = scan_modules(img, find_context, &w);
	if (!ret)
		return -ENOENT;
	heap->allocator = "musl mallocng";
	heap->arenas = 1;
	if (ret > 0)
		ret = walk_groups(&w);
	if (!ret)
		check_sums(&w);
	vec_free(&w.groups);
	image_view_free(&w.view);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "no memory to list the blocks");
	heap_finish(heap);
	return 0;
}

const struct walker walker_musl_ng = {
    .name = "musl mallocng",
    .machines = "x86_64 aarch64",
    .library = "-musl",
    .walk = walk_mallocng,
};
