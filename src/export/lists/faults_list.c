/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/faults.h"
#include "export/lists/entries.h"
#include "lib/human.h"
#include "model/model.h"

static void write_json(struct entries *e, const struct allocation *a)
{
	const struct model_block *b = &a->block;
	yajl_gen g = e->g;

	yajl_gen_map_open(g);
	json_number(g, "id", b->ordinal);
	json_address(g, b->addr);
	json_moment(g, e->m, "timestamp", b->time_ns);
	json_number(g, "thread", b->tid);
	json_number(g, "page_size", b->size);
	json_boolean(g, "is_major", b->flags & EV_F_MAJOR);
	json_stacks_refer(&e->stacks, g, b->stack);
	yajl_gen_map_close(g);
}

static void write_text(struct entries *e, const struct allocation *a)
{
	const struct model_block *b = &a->block;
	char size[24];

	fprintf(e->out, "%11.6f  %-14llx %8u %10s%s\n", (double)b->time_ns / 1e9,
		(unsigned long long)b->addr, b->tid, human_bytes(b->size, size),
		b->flags & EV_F_MAJOR ? "  major" : "");
}

int faults_list(struct model *m, const struct view *v, FILE *out, uint64_t *total,
		struct mp_err *err)
{
	static const struct entry_format format = {
	    .key = "faults",
	    .noun = "page fault",
	    .heading = "    seconds  address          thread       page",
	    .json = write_json,
	    .text = write_text,
	};

	return entries_write(m, v, &format, out, total, err);
}
