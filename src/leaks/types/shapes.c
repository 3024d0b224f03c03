/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/shapes.h"

#include <errno.h>
#include <stdlib.h>
#include "leaks/types/shape.h"

static void free_all(struct shapes *s)
{
	vec_for_each (&s->kinds, k) {
		free(k->sample);
		free(k->nodes);
	}
	vec_free(&s->kinds);
	vec_free(&s->odd);
	vec_free(&s->shared);
	vec_free(&s->arrays);
	vec_free(&s->chains);
	vec_free(&s->found);
	for (int i = 0; i < SHAPE_SLOTS; i++)
		free(s->link[i]);
	free(s->block);
}

int shapes_take(struct block_names *n, const struct graph *g, struct image *img, struct modules *m)
{
	struct shapes s = {.n = n, .g = g, .img = img, .m = m, .reads = SHAPE_READS};
	int ret = -ENOMEM;

	/* Numbers of blocks have a bit for another use. */
	if (!g->n || g->n >= SHAPE_FOREIGN - 1)
		return 0;
	s.block = calloc(g->n, sizeof(*s.block));
	if (s.block)
		ret = shape_kinds(&s);
	if (!ret)
		ret = shape_slots(&s);
	if (!ret)
		ret = shape_links(&s);
	if (!ret)
		ret = shape_shared(&s);
	if (!ret) {
		shape_roles(&s);
		ret = shape_chains(&s);
	}
	if (!ret)
		ret = shape_tables(&s);
	if (!ret)
		ret = shape_lists(&s, ROLE_NEXT);
	if (!ret)
		ret = shape_trees(&s);
	if (!ret)
		ret = shape_wide_trees(&s);
	if (!ret)
		ret = shape_lists(&s, ROLE_SINGLE);
	if (!ret)
		ret = shape_heads(&s);
	free_all(&s);
	return ret;
}
