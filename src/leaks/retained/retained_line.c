/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct retained_line *retained_line_new(enum retained_kind kind)
{
	struct retained_line *l = calloc(1, sizeof(*l));

	if (l)
		l->kind = kind;
	return l;
}

/* Their depth is bounded. */
void retained_line_free(struct retained_line *l)
{
	struct retained_line *next;

	if (!l)
		return;
	for (struct retained_line *c = l->child; c; c = next) {
		next = c->next;
		retained_line_free(c);
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

void retained_line_insert(struct retained_line *parent, struct retained_line *l)
{
	struct retained_line **at = &parent->child;

	while (*at && (*at)->kind != RETAINED_REST &&
	       (l->kind == RETAINED_REST || (*at)->bytes >= l->bytes))
		at = &(*at)->next;
	l->next = *at;
	*at = l;
}

int retained_note_container(const struct retained_builder *b, struct retained_line *l,
			    uint64_t addr, uint64_t size)
{
	const struct container *c = block_names_container_in(&b->names, addr, size);
	const struct block_name *name = c ? &b->names.list.at[c->name - 1] : NULL;

	if (!c)
		return 0;
	l->container = (struct line_container){strdup(name->text), name->source, *c};
	return l->container.name ? 0 : -ENOMEM;
}

const char *retained_kind_name(enum retained_kind kind, enum holder_kind holder)
{
	switch (kind) {
	case RETAINED_ALL:
		return "all";
	case RETAINED_SHARED:
		return "shared";
	case RETAINED_BLOCKS:
		return "blocks";
	case RETAINED_REST:
		return "rest";
	default:
		return holder_kind_name(holder);
	}
}
