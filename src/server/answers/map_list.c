/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/map_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/filter/filter.h"
#include "model/model.h"
#include "server/answers/map_pieces.h"

#define NO_MAP	 UINT32_MAX
#define SHORT_NS 1000000000u
#define PAGE	 4096u /* the smallest of all machines; with larger pages, ends are about right */

struct maker {
	const struct model *m;
	struct map_list *l;
	struct map_pieces pieces;
	/* The first unused entry of the list + 1, whose .end is the next one; 0: none */
	uint32_t unused;
	/* An EV_UNMAP or EV_REMAP_BEGIN per thread, as long as its call can still fail. */
	VEC(struct mp_event) begun;
	size_t look;	   /* the next one, in facts.map_usage */
	const char *inner; /* name of the allocator's own mappings */
	/* Of the call that is being applied: */
	uint64_t start, end, time_ns;
	struct map_source by;
};

/* ------------------------------------------------------------------ the list -- */

/* Return: the index of a new map, NO_MAP when out of memory. */
static uint32_t new_map(struct maker *k, const struct map *map)
{
	uint32_t i = k->unused;

	if (!i)
		return vec_push(&k->l->at, *map) ? NO_MAP : (uint32_t)k->l->at.n - 1;
	k->unused = (uint32_t)k->l->at.at[i - 1].end;
	k->l->at.at[i - 1] = *map;
	return i - 1;
}

static bool is_used(const struct map *map)
{
	return map->pieces || map->died_ns != MAP_LIVES;
}

/* The map has no piece any more. */
static void end_map(struct maker *k, struct map *map, uint64_t now_ns, const struct map_source *by)
{
	if (!map->uses.n && now_ns - map->born_ns < SHORT_NS) {
		map->end = k->unused;
		k->unused = (uint32_t)(map - k->l->at.at) + 1;
		return;
	}
	map->died_ns = now_ns;
	map->ended = *by;
}

/* ------------------------------------------------------------------ calls -- */

static void on_cut(void *ctx, uint32_t index, int pieces)
{
	struct maker *k = ctx;
	struct map *map = &k->l->at.at[index];

	map->pieces += (uint32_t)pieces;
	if (!map->pieces) {
		end_map(k, map, k->time_ns, &k->by);
		return;
	}
	if (map->uses.n)
		return;
	/* An allocator cuts off what it does not need of a mapping that it has just made. */
	if (map->start >= k->start && map->start < k->end)
		map->start = k->end;
	if (map->end > k->start && map->end <= k->end)
		map->end = k->start;
}

/* Return: 0 or -ENOMEM. */
static int unmap(struct maker *k, uint64_t start, uint64_t size, const struct mp_event *by)
{
	size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (!size || size > UINT64_MAX - start)
		return 0;
	k->start = start;
	k->end = start + size;
	k->time_ns = by->time_ns;
	k->by = (struct map_source){true, by->tid, by->stack};
	return pieces_cut(&k->pieces, start, start + size, on_cut, k);
}

static int add_map(struct maker *k, const struct mp_event *ev)
{
	/* The kernel maps whole pages. */
	uint64_t size = (ev->size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	struct map map = {.start = ev->addr,
			  .end = ev->addr + size,
			  .born_ns = ev->time_ns,
			  .died_ns = MAP_LIVES,
			  .source = {true, ev->tid, ev->stack},
			  .name = ev->flags & EV_F_INNER ? k->inner : "[anon:mmap]",
			  .prot = ev->prot,
			  .flags = ev->mapflags,
			  .pieces = 1};
	struct map_piece piece = {map.start, map.end, 0};

	if (!size || size < ev->size || size > UINT64_MAX - ev->addr)
		return 0;
	if (unmap(k, ev->addr, size, ev))
		return -ENOMEM;
	piece.map = new_map(k, &map);
	return piece.map == NO_MAP ? -ENOMEM : pieces_add(&k->pieces, &piece);
}

/* Applies what was begun by thread @tid, or by any if it is 0, or where @addr and @size say that it has
 * succeeded: another call got the memory.  Return: 0 or -ENOMEM. */
static int apply_begun(struct maker *k, uint32_t tid, uint64_t addr, uint64_t size)
{
	size_t kept = 0;
	int ret = 0;

	vec_for_each (&k->begun, b) {
		bool meets = b->addr < addr + size && addr < b->addr + b->size;

		if (tid && b->tid != tid && !meets)
			k->begun.at[kept++] = *b;
		else if (!ret)
			ret = unmap(k, b->addr, b->size, b);
	}
	k->begun.n = kept;
	return ret;
}

/* Return: whether the thread had begun a call, which is then removed. */
static bool take_begun(struct maker *k, uint32_t tid, struct mp_event *begun)
{
	vec_for_each (&k->begun, b) {
		if (b->tid != tid)
			continue;
		*begun = *b;
		*b = k->begun.at[--k->begun.n];
		return true;
	}
	return false;
}

static int end_remap(struct maker *k, const struct mp_event *ev)
{
	struct mp_event begun, made = *ev;
	int ret = 0;

	if (!take_begun(k, ev->tid, &begun))
		begun.size = 0;
	if (!ev->addr)
		return 0;
	if (begun.size) {
		const size_t i = pieces_from(&k->pieces, begun.addr);

		if (i < k->pieces.at.n && k->pieces.at.at[i].start <= begun.addr) {
			const struct map *old = &k->l->at.at[k->pieces.at.at[i].map];

			made.prot = old->prot;
			made.mapflags = old->flags;
		}
		ret = unmap(k, begun.addr, begun.size, ev);
	}
	if (!ret)
		ret = apply_begun(k, ev->tid, ev->addr, ev->size);
	return ret ? ret : add_map(k, &made);
}

/* Return: 0 or -ENOMEM. */
static int take_call(struct maker *k, const struct mp_event *ev)
{
	struct mp_event begun;
	int ret;

	switch (ev->kind) {
	case EV_MAP:
		ret = apply_begun(k, ev->tid, ev->addr, ev->size);
		return ret ? ret : add_map(k, ev);
	case EV_UNMAP:
	case EV_REMAP_BEGIN:
		ret = apply_begun(k, ev->tid, 0, 0);
		return ret ? ret : vec_push(&k->begun, *ev);
	case EV_UNMAP_FAILED:
		take_begun(k, ev->tid, &begun);
		return 0;
	case EV_REMAP_END:
		return end_remap(k, ev);
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ looks -- */

/* Keeps pieces that no mapping of a look covers, up to @until: those of calls can be without memory. */
static int keep_until(const struct maker *k, struct map_pieces *fresh, size_t *i, uint64_t until)
{
	for (; *i < k->pieces.at.n && k->pieces.at.at[*i].start < until; (*i)++) {
		struct map_piece *p = &k->pieces.at.at[*i], part = *p;

		part.end = part.end < until ? part.end : until;
		if (k->l->at.at[p->map].source.known && vec_push(&fresh->at, part))
			return -ENOMEM;
		if (p->end > until) {
			p->start = until;
			break;
		}
	}
	return 0;
}

static bool is_older(const struct map *a, const struct map *b)
{
	return a->born_ns != b->born_ns ? a->born_ns < b->born_ns : a->start < b->start;
}

/* Return: the oldest map of the looks before that has a part, and the name, of the mapping @u; NO_MAP:
 * there is none. */
static uint32_t seen_before(const struct maker *k, const struct mp_map_usage *u, size_t i)
{
	uint32_t oldest = NO_MAP;

	for (; i < k->pieces.at.n && k->pieces.at.at[i].start < u->end; i++) {
		uint32_t at = k->pieces.at.at[i].map;
		const struct map *map = &k->l->at.at[at];

		if (!map->source.known && !strcmp(map->name, map_usage_name(u)) &&
		    (oldest == NO_MAP || is_older(map, &k->l->at.at[oldest])))
			oldest = at;
	}
	return oldest;
}

/* Gives a part of the mapping @u that no call is known for to the map *@seen, made if it is NO_MAP. */
static int add_unknown_part(struct maker *k, const struct mp_map_usage *u, struct map_pieces *fresh,
			    const struct map_piece *part, uint32_t *seen)
{
	struct map_piece piece = *part;
	struct map *map;

	if (part->start >= part->end)
		return 0;
	if (*seen == NO_MAP) {
		struct map made = {.start = part->start,
				   .end = part->end,
				   .born_ns = u->time_ns,
				   .died_ns = MAP_LIVES,
				   .name = map_usage_name(u),
				   .prot = u->prot};

		*seen = new_map(k, &made);
	}
	piece.map = *seen;
	if (*seen == NO_MAP || vec_push(&fresh->at, piece))
		return -ENOMEM;
	map = &k->l->at.at[*seen];
	map->start = piece.start < map->start ? piece.start : map->start;
	map->end = piece.end > map->end ? piece.end : map->end;
	return 0;
}

/* Adds the memory of the mapping @u to its map.  If it has parts of several, the kernel has joined them,
 * and what each of them has is not known.  @first: the pieces of @u begin there. */
static void share(struct maker *k, const struct mp_map_usage *u, const struct map_pieces *fresh,
		  size_t first)
{
	bool joined = false;

	for (size_t i = first; i < fresh->at.n; i++)
		joined |= fresh->at.at[i].map != fresh->at.at[first].map;
	for (size_t i = first; i < fresh->at.n; i++) {
		struct map *map = &k->l->at.at[fresh->at.at[i].map];

		map->joined |= joined;
		if (!map->uses.n && u->path && *u->path)
			map->name = u->path;
		if (i > first)
			continue;
		map->now.rss += u->rss;
		map->now.anonymous += u->anonymous;
		map->now.swap += u->swap;
	}
}

static int take_mapping(struct maker *k, const struct mp_map_usage *u, struct map_pieces *fresh,
			size_t *i)
{
	struct map_piece gap = {.start = u->start};
	uint32_t seen;
	size_t first;

	if (keep_until(k, fresh, i, u->start))
		return -ENOMEM;
	first = fresh->at.n;
	seen = seen_before(k, u, *i);
	for (; *i < k->pieces.at.n && k->pieces.at.at[*i].start < u->end; (*i)++) {
		struct map_piece *p = &k->pieces.at.at[*i], part = *p;

		part.end = p->end < u->end ? p->end : u->end;
		if (k->l->at.at[p->map].source.known) {
			gap.end = part.start;
			if (add_unknown_part(k, u, fresh, &gap, &seen) ||
			    vec_push(&fresh->at, part))
				return -ENOMEM;
			gap.start = part.end;
		}
		if (p->end > u->end) {
			p->start = u->end;
			break;
		}
	}
	gap.end = u->end;
	if (add_unknown_part(k, u, fresh, &gap, &seen))
		return -ENOMEM;
	share(k, u, fresh, first);
	return 0;
}

static bool same_use(const struct map_use *a, const struct map_use *b)
{
	return a->size == b->size && a->rss == b->rss && a->anonymous == b->anonymous &&
	       a->swap == b->swap;
}

static int note_use(struct map *map, uint64_t now_ns)
{
	struct map_use use = map->now;
	int ret = 0;

	use.time_ns = now_ns;
	map->now = (struct map_use){0};
	if (map->joined) {
		map->joined = false;
		return 0;
	}
	if (!map->uses.n || !same_use(&use, &map->uses.at[map->uses.n - 1]))
		ret = vec_push(&map->uses, use);
	if (use.rss > map->peak_rss)
		map->peak_rss = use.rss;
	return ret;
}

/* Ends the maps of the space from @lo to @hi that have no piece any more, and notes the use of the
 * others. */
static int close_look(struct maker *k, uint64_t lo, uint64_t hi, uint64_t now_ns)
{
	static const struct map_source unknown;

	vec_for_each (&k->l->at, map) {
		map->now.size = 0;
		if (map->start >= lo && map->start < hi && map->died_ns == MAP_LIVES && map->pieces)
			map->pieces = UINT32_MAX;
	}
	vec_for_each (&k->pieces.at, p) {
		struct map *map = &k->l->at.at[p->map];

		if (p->start < lo || p->start >= hi)
			continue;
		map->pieces = map->pieces == UINT32_MAX ? 1 : map->pieces + 1;
		map->now.size += p->end - p->start;
	}
	vec_for_each (&k->l->at, map) {
		if (map->pieces == UINT32_MAX) {
			map->pieces = 0;
			end_map(k, map, now_ns, &unknown);
		} else if (map->pieces && map->start >= lo && map->start < hi &&
			   note_use(map, now_ns)) {
			return -ENOMEM;
		}
	}
	return 0;
}

/* Applies the look of one process that is in facts.map_usage from @from to @to. */
static int take_look(struct maker *k, size_t from, size_t to)
{
	const struct mp_map_usage *u = &k->m->facts.map_usage.at[from];
	bool several = k->m->tasks.processes.n;
	uint64_t lo = several ? u->start >> MP_PROCESS_SHIFT << MP_PROCESS_SHIFT : 0,
		 hi = several ? lo + (1ull << MP_PROCESS_SHIFT) : UINT64_MAX;
	size_t i = 0, before = pieces_from(&k->pieces, lo);
	struct map_pieces fresh = {0};
	int ret = 0;

	for (; i < before && !ret; i++)
		ret = vec_push(&fresh.at, k->pieces.at.at[i]);
	for (size_t at = from; at < to && !ret; at++)
		ret = take_mapping(k, &k->m->facts.map_usage.at[at], &fresh, &i);
	if (!ret)
		ret = keep_until(k, &fresh, &i, hi);
	for (; i < k->pieces.at.n && !ret; i++)
		ret = vec_push(&fresh.at, k->pieces.at.at[i]);
	vec_free(&k->pieces.at);
	k->pieces = fresh;
	return ret ? ret : close_look(k, lo, hi, u->time_ns);
}

/* Return: the end of the look that begins at @from. */
static size_t look_end(const struct model *m, size_t from)
{
	const struct mp_map_usage *at = m->facts.map_usage.at;
	bool several = m->tasks.processes.n;
	size_t to = from;

	while (to < m->facts.map_usage.n && at[to].time_ns == at[from].time_ns &&
	       (!several || at[to].start >> MP_PROCESS_SHIFT == at[from].start >> MP_PROCESS_SHIFT))
		to++;
	return to;
}

/* Applies all looks before @until_ns.  Return: 0 or -ENOMEM. */
static int take_looks(struct maker *k, uint64_t until_ns)
{
	int ret = 0;

	while (!ret && k->look < k->m->facts.map_usage.n &&
	       k->m->facts.map_usage.at[k->look].time_ns < until_ns) {
		size_t to = look_end(k->m, k->look);

		ret = apply_begun(k, 0, 0, 0);
		if (!ret)
			ret = take_look(k, k->look, to);
		k->look = to;
	}
	return ret;
}

/* ------------------------------------------------------------------ the whole -- */

static int on_event(void *ctx, const struct mp_event *ev)
{
	struct maker *k = ctx;
	int ret;

	if (ev->kind < EV_MAP || ev->kind > EV_REMAP_END)
		return 0;
	ret = take_looks(k, ev->time_ns);
	return ret ? ret : take_call(k, ev);
}

/* Return: the name of mappings that the allocator made: bytehound's, if there is only one allocator. */
static const char *inner_name(const struct model *m)
{
	static const char *const names[] = {[FAMILY_GLIBC] = "[anon:glibc]",
					    [FAMILY_JEMALLOC] = "[anon:jemalloc]",
					    [FAMILY_TCMALLOC] = "[anon:tcmalloc]",
					    [FAMILY_MIMALLOC] = "[anon:mimalloc]"};
	enum family family = FAMILY_UNKNOWN;

	vec_for_each (&m->facts.hooks, h) {
		if (!h->calls || h->family == family || h->family == FAMILY_UNKNOWN)
			continue;
		if (family != FAMILY_UNKNOWN)
			return "[anon:allocator]";
		family = h->family;
	}
	return family == FAMILY_UNKNOWN ? "[anon:allocator]" : names[family];
}

static int by_birth(const void *a, const void *b)
{
	const struct map *x = a, *y = b;

	if (x->born_ns != y->born_ns)
		return x->born_ns < y->born_ns ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void number_maps(struct map_list *l)
{
	size_t n = 0;

	vec_for_each (&l->at, map) {
		if (is_used(map))
			l->at.at[n++] = *map;
		else
			vec_free(&map->uses);
	}
	l->at.n = n;
	if (n)
		qsort(l->at.at, n, sizeof(l->at.at[0]), by_birth);
}

int map_list_make(const struct model *m, struct map_list *l, struct mp_err *err)
{
	struct maker k = {.m = m, .l = l, .inner = inner_name(m)};
	struct history_sink sink = {.event = on_event, .ctx = &k};
	int ret;

	*l = (struct map_list){0};
	ret = model_replay(m, &sink, NULL, err);
	if (!ret && (take_looks(&k, UINT64_MAX) || apply_begun(&k, 0, 0, 0)))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	vec_free(&k.pieces.at);
	vec_free(&k.begun);
	if (ret)
		map_list_free(l);
	else
		number_maps(l);
	return ret;
}

void map_list_free(struct map_list *l)
{
	vec_for_each (&l->at, map)
		vec_free(&map->uses);
	vec_free(&l->at);
}

uint64_t map_address(const struct model *m, const struct map *map)
{
	return m->tasks.processes.n ? map->start & ((1ull << MP_PROCESS_SHIFT) - 1) : map->start;
}

int map_list_select(const char *path, uint64_t id, struct filter *f, struct mp_err *err)
{
	struct map_list l;
	struct model m;
	int ret = model_load(path, NULL, &m, err);

	if (ret)
		return ret;
	ret = map_list_make(&m, &l, err);
	if (!ret && id >= l.at.n) {
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "from_map: there is no map %llu, but %zu maps",
			      (unsigned long long)id, l.at.n);
	} else if (!ret) {
		const struct map *map = &l.at.at[id];

		ret = filter_add_span(
		    f, &(struct filter_span){map->start, map->end, map->born_ns, map->died_ns});
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	if (l.at.n)
		map_list_free(&l);
	model_free(&m);
	return ret;
}
