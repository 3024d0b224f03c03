/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/names/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536u

struct named_pc {
	struct named_pc *next;
	uint64_t pc;
	uint32_t count;
	struct mp_symbol sym[];
};

struct names {
	struct named_pc *bucket[BUCKETS];
};

static uint32_t hash(uint64_t pc)
{
	return (uint32_t)((pc * 0x9e3779b97f4a7c15ull) >> 48);
}

struct names *names_new(void)
{
	return calloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
	for (uint32_t i = 0; n && i < BUCKETS; i++) {
		while (n->bucket[i]) {
			struct named_pc *e = n->bucket[i];

			n->bucket[i] = e->next;
			free(e);
		}
	}
	free(n);
}

static char *copy(char **at, const char *s)
{
	char *out = *at;

	if (!s)
		return NULL;
	strcpy(out, s);
	*at += strlen(s) + 1;
	return out;
}

static size_t length(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

int names_add(struct names *n, uint64_t pc, const struct mp_symbol *sym, uint32_t count)
{
	size_t text = 0;
	struct named_pc *e;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		text +=
		    length(sym[i].function) + length(sym[i].raw_function) + length(sym[i].source);
	e = malloc(sizeof(*e) + count * sizeof(e->sym[0]) + text);
	if (!e)
		return -ENOMEM;
	e->pc = pc;
	e->count = count;
	at = (char *)&e->sym[count];
	for (uint32_t i = 0; i < count; i++) {
		e->sym[i] = sym[i];
		e->sym[i].function = copy(&at, sym[i].function);
		e->sym[i].raw_function = copy(&at, sym[i].raw_function);
		e->sym[i].source = copy(&at, sym[i].source);
	}
	e->next = n->bucket[hash(pc)];
	n->bucket[hash(pc)] = e;
	return 0;
}

const struct mp_symbol *names_find(const struct names *n, uint64_t pc, uint32_t *count)
{
	for (const struct named_pc *e = n->bucket[hash(pc)]; e; e = e->next) {
		if (e->pc == pc) {
			*count = e->count;
			return e->sym;
		}
	}
	return NULL;
}
