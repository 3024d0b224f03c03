/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inject/find.h"
#include "lib/utf8.h"
#include "unwind/symbols/symbols.h"

#define MAX_NAME   512
#define TEXT_MIN   4	      /* shorter ones might be numbers */
#define TEXT_MAX   256	      /* bytes that are examined */
#define OFFSET_MAX (1u << 20) /* offset-to-top of a vtable */

struct class
{
	uint64_t vtable; /* 0: the slot is empty */
	char *name;	 /* NULL: not a vtable */
	const char *owner;
	uint32_t id;
};

struct types {
	struct image *img;
	struct class *slot; /* open addressing */
	size_t size, used;
	uint32_t classes;
};

struct types *types_new(struct image *img)
{
	struct types *t = calloc(1, sizeof(*t));

	if (t)
		t->img = img;
	return t;
}

void types_free(struct types *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->size; i++)
		free(t->slot[i].name);
	free(t->slot);
	free(t);
}

static struct class *slot_of(struct class *slot, size_t size, uint64_t vtable)
{
	size_t i = (size_t)((vtable >> 3) * 0x9e3779b97f4a7c15ull >> 20) & (size - 1);

	while (slot[i].vtable && slot[i].vtable != vtable)
		i = (i + 1) & (size - 1);
	return &slot[i];
}

static bool grow_types(struct types *t)
{
	size_t size = t->size ? t->size * 2 : 1024;
	struct class *fresh;

	if (t->used * 2 < t->size)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return false;
	for (size_t i = 0; i < t->size; i++) {
		if (t->slot[i].vtable)
			*slot_of(fresh, size, t->slot[i].vtable) = t->slot[i];
	}
	free(t->slot);
	t->slot = fresh;
	t->size = size;
	return true;
}

/* The map with @addr if it can have constants of a module: vtables, type information, names. */
static const struct image_map *constant(struct types *t, uint64_t addr)
{
	const struct image_map *m = image_map_at(t->img, addr);

	return m && m->path[0] == '/' && !m->shared && m->read ? m : NULL;
}

static bool mangled_name(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '.' && s[i] != '$')
			return false;
	}
	/* A name preceded by its length, a nested name, or a template's. */
	return n > 1 && (isdigit((unsigned char)s[0]) || s[0] == 'N' || s[0] == 'S' || s[0] == 'I');
}

static bool two_words(struct types *t, uint64_t at, uint64_t word[2])
{
	return image_word(t->img, at, &word[0]) &&
	       image_word(t->img, at + t->img->arch->word_size, &word[1]);
}

/* Is it a plausible offset to the top of an object?  It has the size of a word. */
static bool near_top(const struct types *t, uint64_t offset)
{
	int64_t n = t->img->arch->word_size == 4 ? (int32_t)offset : (int64_t)offset;

	return n >= -(int64_t)OFFSET_MAX && n <= (int64_t)OFFSET_MAX;
}

/* Itanium C++ ABI 2.5.2 and 2.9.5: the two words before the vtable's address are offset-to-top and
 * the address of the type information, which has its own vtable pointer and the mangled name. */
static char *class_name(struct types *t, uint64_t vtable)
{
	static const char prefix[] = "typeinfo name for ";
	char name[MAX_NAME + 5] = "_ZTS", *plain;
	const unsigned int word = t->img->arch->word_size;
	uint64_t before[2], info[2];
	size_t n, star;

	if (vtable % word || !two_words(t, vtable - 2ull * word, before) ||
	    !near_top(t, before[0]) || before[1] % word || !constant(t, before[1]) ||
	    !two_words(t, before[1], info) || !constant(t, info[0]) || !constant(t, info[1]))
		return NULL;
	n = image_read(t->img, info[1], name + 4, MAX_NAME);
	name[4 + n] = 0;
	/* '*' marks names that are compared by address. */
	star = name[4] == '*';
	memmove(name + 4, name + 4 + star, strlen(name + 4 + star) + 1);
	if (!mangled_name(name + 4))
		return NULL;
	plain = symbol_demangle(name);
	if (!plain || strncmp(plain, prefix, sizeof(prefix) - 1) != 0) {
		free(plain);
		return strdup(name + 4);
	}
	memmove(plain, plain + sizeof(prefix) - 1, strlen(plain) - sizeof(prefix) + 2);
	return plain;
}

bool types_class(struct types *t, uint64_t word, struct type *out)
{
	const struct image_map *m;
	struct class *c;

	if (word < 4096 || word % t->img->arch->word_size || !grow_types(t))
		return false;
	c = slot_of(t->slot, t->size, word);
	if (!c->vtable) {
		/* Words that are not addresses of constants get no slot. */
		m = constant(t, word);
		if (!m)
			return false;
		c->vtable = word;
		c->name = class_name(t, word);
		c->owner = m->path;
		c->id = c->name ? ++t->classes : 0;
		t->used++;
	}
	if (!c->name)
		return false;
	*out = (struct type){SHAPE_CLASS, c->name, c->owner, c->id};
	return true;
}

static bool is_text_character(uint32_t c)
{
	return c < 0x80 ? isprint((int)c) || isspace((int)c) : c != UTF8_INVALID && c >= 0xa0;
}

/* Length of the UTF-8 text that fills @s up to a NUL or the end; 0 if it is not text. */
static size_t text_length(const char *s, size_t n)
{
	char text[TEXT_MAX + 1];
	const char *next = text;

	n = n < TEXT_MAX ? n : TEXT_MAX;
	memcpy(text, s, n);
	text[n] = 0;
	while (*next) {
		const char *at = next;

		/* The last character can be truncated. */
		if (!is_text_character(utf8_next(&next)) && (size_t)(at - text) + 3 < n)
			return 0;
	}
	n = (size_t)(next - text);
	return n >= TEXT_MIN ? n : 0;
}

/* What the agent leaves below a stack pointer can get into a block: it says nothing of the block. */
static bool is_file(const struct image_map *m)
{
	return m->path[0] == '/' && !session_is_path(m->path);
}

/* Printable bytes can also be addresses: then every word is one. */
static bool are_addresses(const struct types *t, const char *content, size_t n)
{
	const unsigned int size = t->img->arch->word_size;

	for (size_t i = 0; i + size <= n || i == 0; i += size) {
		if (!image_map_at(t->img, arch_word(t->img->arch, content + i)))
			return false;
	}
	return true;
}

void types_of(struct types *t, const void *content, size_t n, struct type *out)
{
	const struct arch *arch = t->img->arch;
	size_t words = n / arch->word_size, text = text_length(content, n), addresses = 0,
	       zeros = 0;

	memset(out, 0, sizeof(*out));
	if (words && types_class(t, arch_word(arch, content), out))
		return;
	for (size_t i = 0; i < words; i++) {
		uint64_t word = arch_word(arch, (const char *)content + i * arch->word_size);
		const struct image_map *m = word ? image_map_at(t->img, word) : NULL;

		zeros += !word;
		addresses += m != NULL;
		if (m && !out->owner && is_file(m))
			out->owner = m->path;
	}
	if (zeros == words)
		out->shape = SHAPE_ZEROS;
	else if (text && !(words && are_addresses(t, content, text)))
		out->shape = SHAPE_TEXT;
	else if (addresses && 2 * addresses >= words - zeros)
		out->shape = SHAPE_POINTERS;
	else
		out->shape = SHAPE_DATA;
}

const char *shape_name(enum shape shape)
{
	static const char *const name[] = {
	    [SHAPE_CLASS] = "class", [SHAPE_TEXT] = "text",   [SHAPE_POINTERS] = "pointers",
	    [SHAPE_DATA] = "data",   [SHAPE_ZEROS] = "zeros",
	};

	return name[shape];
}
