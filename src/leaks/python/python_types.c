/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/python/python_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/scan.h"

#define MAX_TYPES   65534u
#define MAX_NAME    128u
#define MAX_SIZE    (1u << 20)
#define LEAST_CLASS 800u /* bytes of a class: PyHeapTypeObject */
#define MOST_CLASS  (64u << 10)
#define ROUNDS	    8 /* metaclasses of metaclasses */
#define MAX_BASES   64

/* tp_flags */
#define FLAG_PREHEADER_12 (3ull << 3) /* managed weak references or dict, from 3.12 on */
#define FLAG_INLINE_13	  (1ull << 2) /* values behind the object, from 3.13 on */
#define FLAG_DICT_11	  (1ull << 4) /* managed dict, in 3.11 */
#define FLAG_CLASS	  (1ull << 9) /* allocated */
#define FLAG_READY	  (1ull << 12)
#define FLAG_GC		  (1ull << 14)
#define FLAG_LIST	  (1ull << 25)
#define FLAG_STR	  (1ull << 28)
#define FLAG_DICT	  (1ull << 29)
#define FLAG_TYPE	  (1ull << 31)

/* The first words of PyTypeObject. */
struct type_object {
	uint64_t refcount, type, items;
	uint64_t name, basicsize, itemsize;
	uint64_t dealloc_to_buffer[15];
	uint64_t flags;
	uint64_t doc_to_getset[10];
	uint64_t base;
};
_Static_assert(offsetof(struct type_object, flags) == 168, "as in CPython");
_Static_assert(offsetof(struct type_object, base) == 256, "as in CPython");

struct taker {
	struct python_types *t;
	struct image *img;
	const struct heap_block *block;
	size_t n;
	const char *python; /* path of the file that has `type` */
	VEC(uint64_t) meta; /* addresses of metatypes */
	bool more;	    /* a metatype was found in this round */
	int ret;
};

/* ------------------------------------------------------------- table -- */

static uint32_t slot_of(const struct python_types *t, uint64_t addr)
{
	uint32_t i = (uint32_t)(addr * 0x9e3779b97f4a7c15ull >> 40) & (t->slots - 1);

	while (t->slot[i] && t->list.at[t->slot[i] - 1].addr != addr)
		i = (i + 1) & (t->slots - 1);
	return i;
}

uint32_t python_types_find(const struct python_types *t, uint64_t addr)
{
	if (addr < t->low || addr > t->high || !t->slots)
		return UINT32_MAX;
	return t->slot[slot_of(t, addr)] - 1;
}

static int add_type(struct python_types *t, const struct python_type *type)
{
	if (2 * t->list.n >= t->slots) {
		uint32_t slots = t->slots ? 2 * t->slots : 1024;
		uint32_t *slot = calloc(slots, sizeof(*slot));

		if (!slot)
			return -ENOMEM;
		free(t->slot);
		t->slot = slot;
		t->slots = slots;
		for (uint32_t i = 0; i < t->list.n; i++)
			t->slot[slot_of(t, t->list.at[i].addr)] = i + 1;
	}
	if (vec_push(&t->list, *type))
		return -ENOMEM;
	t->slot[slot_of(t, type->addr)] = (uint32_t)t->list.n;
	if (type->addr < t->low)
		t->low = type->addr;
	if (type->addr > t->high)
		t->high = type->addr;
	return 0;
}

/* ------------------------------------------------------------- one type -- */

static bool read_name(struct image *img, uint64_t addr, char name[MAX_NAME])
{
	size_t n = image_read(img, addr, name, MAX_NAME - 1), length = 0;

	name[n] = 0;
	while ((unsigned char)name[length] >= 0x20 && name[length] != 0x7f)
		length++;
	return length && !name[length];
}

/* Bytes before the object: links of the collector, and before these two words for its dict and its
 * weak references. */
static uint8_t before_of(uint32_t minor, uint64_t flags)
{
	uint8_t n = flags & FLAG_GC ? 16 : 0;

	if (minor >= 12 && flags & FLAG_PREHEADER_12)
		n += 16;
	else if (minor == 11 && flags & FLAG_DICT_11)
		n += 16;
	return n;
}

/* Adds the type at @addr if it is one.  Its metatype is known. */
static void take_type(struct taker *k, uint64_t addr)
{
	const struct image_map *m = image_map_at(k->img, addr);
	struct type_object o;
	struct python_type type = {.addr = addr};
	char name[MAX_NAME];

	if (k->ret || addr % 8 || !m || python_types_find(k->t, addr) != UINT32_MAX ||
	    k->t->list.n == MAX_TYPES || !image_read_all(k->img, addr, &o, sizeof(o)) ||
	    o.refcount > UINT32_MAX || !(o.flags & FLAG_READY) || o.basicsize < 16 ||
	    o.basicsize > MAX_SIZE || !read_name(k->img, o.name, name))
		return;
	type.flags = o.flags;
	type.base = o.base;
	type.size = (uint32_t)o.basicsize;
	/* A text has several representations; the type's size is that of the largest. */
	type.fixed = !o.itemsize && !(k->t->minor >= 13 && o.flags & FLAG_INLINE_13);
	if (o.flags & FLAG_STR && !strcmp(name, "str")) {
		type.size = 40;
		type.fixed = false;
	}
	type.before = before_of(k->t->minor, o.flags);
	type.gc = o.flags & FLAG_GC;
	if (o.flags & FLAG_LIST)
		type.kind = PYTHON_LIST;
	else if (o.flags & FLAG_DICT)
		type.kind = PYTHON_DICT;
	type.owner = m->path[0] == '/' ? m->path : k->python;
	type.name = strdup(name);
	if (!type.name || add_type(k->t, &type)) {
		free(type.name);
		k->ret = -ENOMEM;
		return;
	}
	if (o.flags & FLAG_TYPE) {
		k->more = true;
		if (vec_push(&k->meta, addr))
			k->ret = -ENOMEM;
	}
}

static bool is_meta(const struct taker *k, uint64_t word)
{
	vec_for_each (&k->meta, m) {
		if (*m == word)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------- where they are -- */

bool python_is_collector(struct image *img, const uint64_t *word, uint64_t addr)
{
	unsigned int good = 0;

	if (word[9] != addr)
		return false;
	for (unsigned int i = 0; i < 9; i += 3) {
		const uint64_t head = addr + 8 * i;
		uint64_t back;

		if (!word[i] || word[i] % 8 || !word[i + 1] || word[i + 1] % 8)
			return false;
		if (word[i] == head)
			good += word[i + 1] == head;
		else
			good += image_word(img, word[i] + 8, &back) && (back & ~3ull) == head;
	}
	/* The links back of the list that is being collected are used for counts. */
	return good >= 2;
}

/* Finds `type`, and the collector's lists. */
static int visit_first(const struct scan_data *d, void *arg)
{
	struct taker *k = arg;
	const struct image_map *m = image_map_at(d->img, d->start);

	for (size_t i = 0; i + PYTHON_COLLECTOR_WORDS <= d->n; i++) {
		const uint64_t addr = d->start + 8 * i;
		const struct heap_range r = {addr, addr + 8 * PYTHON_COLLECTOR_WORDS,
					     HEAP_METADATA};

		if (python_is_collector(d->img, &d->words[i], addr) &&
		    vec_push(&k->t->collectors, r))
			return -ENOMEM;
		if (k->python || d->words[i + 1] != addr)
			continue;
		k->python = m ? m->path : NULL;
		take_type(k, addr);
		if (k->ret)
			return k->ret;
		if (!k->meta.n || strcmp(k->t->list.at[0].name, "type") != 0) {
			k->python = NULL;
			k->meta.n = 0;
			vec_for_each (&k->t->list, t)
				free(t->name);
			k->t->list.n = 0;
			for (uint32_t s = 0; s < k->t->slots; s++)
				k->t->slot[s] = 0;
			k->t->low = UINT64_MAX;
			k->t->high = 0;
		}
	}
	return 0;
}

static int visit(const struct scan_data *d, void *arg)
{
	struct taker *k = arg;

	for (size_t i = 1; i < d->n && !k->ret; i++) {
		if (d->words[i] && is_meta(k, d->words[i]))
			take_type(k, d->start + 8 * (i - 1));
	}
	return k->ret;
}

/* Classes are in blocks. */
static void visit_blocks(struct taker *k)
{
	struct image_view view = {0};

	for (size_t i = 0; i < k->n && !k->ret; i++) {
		const struct heap_block *b = &k->block[i];
		uint64_t word[6];
		const void *p;

		if (b->size < LEAST_CLASS || b->size > MOST_CLASS)
			continue;
		p = image_view(k->img, &view, b->addr, sizeof(word));
		if (!p)
			continue;
		memcpy(word, p, sizeof(word));
		for (uint64_t before = 0; before <= 32; before += 16) {
			if (is_meta(k, word[before / 8 + 1]))
				take_type(k, b->addr + before);
		}
	}
	image_view_free(&view);
}

/* ------------------------------------------------------------- bases -- */

static bool is_weak(const char *name)
{
	/* Two names: before and from 3.11 on. */
	return !strcmp(name, "weakref") || !strcmp(name, "weakproxy") ||
	       !strcmp(name, "weakcallableproxy") || !strcmp(name, "weakref.ReferenceType") ||
	       !strcmp(name, "weakref.ProxyType") || !strcmp(name, "weakref.CallableProxyType");
}

static enum python_kind exact_kind(const char *name)
{
	static const struct {
		const char *name;
		enum python_kind kind;
	} kinds[] = {{"str", PYTHON_STR},
		     {"bytes", PYTHON_BYTES},
		     {"int", PYTHON_INT},
		     {"tuple", PYTHON_TUPLE}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(kinds[i].name, name))
			return kinds[i].kind;
	}
	return PYTHON_OTHER;
}

/* Types have the kind of their built-in base. */
static void find_kinds(struct python_types *t, const char *python)
{
	vec_for_each (&t->list, it) {
		const struct python_type *base = it;
		uint32_t next;

		for (int i = 0; i < MAX_BASES && it->kind == PYTHON_OTHER; i++) {
			bool built_in = !(base->flags & FLAG_CLASS) && !strcmp(base->owner, python);

			if (built_in && is_weak(base->name) && base->size >= 56)
				it->kind = PYTHON_WEAK;
			else if (built_in && base->size >= 192 &&
				 (!strcmp(base->name, "set") || !strcmp(base->name, "frozenset")))
				it->kind = PYTHON_SET;
			else if (built_in && base->size >= 56 && !strcmp(base->name, "module"))
				it->kind = PYTHON_MODULE;
			else if (built_in && !i)
				it->kind = exact_kind(it->name);
			next = python_types_find(t, base->base);
			if (next == UINT32_MAX)
				break;
			base = &t->list.at[next];
		}
	}
}

int python_types_take(struct python_types *t, struct image *img, const struct heap_block *block,
		      size_t n, uint32_t minor)
{
	struct taker k = {.t = t, .img = img, .block = block, .n = n};
	int ret;

	*t = (struct python_types){.minor = minor, .low = UINT64_MAX};
	ret = scan_modules(img, visit_first, &k);
	for (int round = 0; !ret && k.python && round < ROUNDS && (!round || k.more); round++) {
		k.more = false;
		ret = scan_modules(img, visit, &k);
		if (!ret)
			visit_blocks(&k);
		if (!ret)
			ret = k.ret;
	}
	if (!ret && k.python)
		find_kinds(t, k.python);
	vec_free(&k.meta);
	return ret;
}

void python_types_free(struct python_types *t)
{
	vec_for_each (&t->list, it)
		free(it->name);
	vec_free(&t->list);
	vec_free(&t->collectors);
	free(t->slot);
	memset(t, 0, sizeof(*t));
}
