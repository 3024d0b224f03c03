/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/entries.h"

#include <errno.h>
#include <string.h>
#include "export/text/text.h"

#define FRAMES 3

static int write_json(struct entries *e, const struct view *v, const struct entry_format *f)
{
	int ret;

	e->g = json_begin(e->out, true);
	ret = e->g ? json_stacks_init(&e->stacks, e->m) : -ENOMEM;
	if (ret) {
		if (e->g)
			yajl_gen_free(e->g);
		return ret;
	}
	yajl_gen_map_open(e->g);
	json_name(e->g, f->key);
	yajl_gen_array_open(e->g);
	for (uint64_t i = v->skip; i < e->list->at.n; i++)
		f->json(e, &e->list->at.at[i]);
	yajl_gen_array_close(e->g);
	json_stacks_write(&e->stacks, e->g, e->m);
	json_number(e->g, "total_count", e->list->total);
	yajl_gen_map_close(e->g);
	yajl_gen_free(e->g);
	json_stacks_free(&e->stacks);
	return ferror(e->out) ? -EIO : 0;
}

static void write_text(struct entries *e, const struct view *v, const struct entry_format *f)
{
	fprintf(e->out, "%s\n", f->heading);
	for (uint64_t i = v->skip; i < e->list->at.n; i++) {
		f->text(e, &e->list->at.at[i]);
		text_stack(e->m, e->list->at.at[i].block.stack, FRAMES, "                  ",
			   e->out);
	}
	text_rest(v, e->list->total, f->noun, e->out);
}

int entries_write(struct model *m, const struct view *v, const struct entry_format *f, FILE *out,
		  uint64_t *total, struct mp_err *err)
{
	struct allocations list;
	struct entries e = {.m = m, .list = &list, .out = out};
	int ret = allocations_collect(m, v, NULL, &list, err);

	if (ret)
		return ret;
	*total = list.total;
	if (v->json)
		ret = write_json(&e, v, f);
	else
		write_text(&e, v, f);
	allocations_free(&list);
	if (ret)
		mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
	return ret;
}
