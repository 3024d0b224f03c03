/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/csv.h"

#include <errno.h>
#include <stdlib.h>
#include "export/tree.h"
#include "formats/session.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/stack_order.h"

void csv_text(const char *s, FILE *out)
{
	putc('"', out);
	for (s = printable(s); *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

static int write_stack(struct model *m, uint32_t id, FILE *out)
{
	char *folded = NULL;
	size_t size;
	int ret;
	FILE *f = open_memstream(&folded, &size);

	if (!f)
		return -ENOMEM;
	ret = folded_stack(m, id, true, f);
	if (fclose(f) || ret) {
		free(folded);
		return -ENOMEM;
	}
	csv_text(folded, out);
	free(folded);
	return 0;
}

/* Writes the site: function, source, line; three empty fields if there is none. */
static int write_site(struct model *m, uint32_t id, FILE *out)
{
	struct shown_stack s;
	const struct frame *f;
	int ret = shown_every(m, id, &s);

	if (ret || s.site == s.n) {
		fputs(",,,", out);
		return ret;
	}
	f = &s.at[s.site].at;
	csv_text(s.at[s.site].full, out);
	putc(',', out);
	if (f->source)
		csv_text(f->source, out);
	putc(',', out);
	if (f->source)
		fprintf(out, "%u", f->line);
	putc(',', out);
	return 0;
}

static int write_group(struct model *m, uint32_t id, FILE *out)
{
	const struct group *g = &m->sums.group[id];
	const uint64_t v[] = {
	    g->allocations, g->allocated_bytes, g->usable_bytes, g->frees,
	    g->live_blocks, g->live_bytes,	g->temporary,	 g->temporary_bytes,
	    g->peak_blocks, g->peak_bytes,	g->maps,	 g->map_bytes};
	int ret;

	fprintf(out, "%u", id);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		fprintf(out, ",%llu", (unsigned long long)v[i]);
	fprintf(out, ",%.9f,%.9f,%s,%s,", (double)g->first_ns / 1e9, (double)g->last_ns / 1e9,
		m->stacks.at[id].flags & SS_STACK_COMPLETE ? "true" : "false",
		m->stacks.at[id].flags & SS_STACK_BY_FP ? "true" : "false");
	ret = write_site(m, id, out);
	if (!ret)
		ret = write_stack(m, id, out);
	fputs("\r\n", out);
	return ret;
}

int csv_write(struct model *m, enum cost cost, FILE *out)
{
	uint32_t n, *ids = stack_order(m, cost, &n);
	int ret = ids ? 0 : -ENOMEM;

	fputs("backtrace_id,allocated_count,size,usable_size,freed_count,leaked_count,"
	      "leaked_bytes,temporary_count,temporary_bytes,peak_count,peak_bytes,maps,map_bytes,"
	      "min_timestamp_relative,max_timestamp_relative,complete,by_frame_pointers,"
	      "function,source,line,backtrace\r\n",
	      out);
	for (uint32_t i = 0; !ret && i < n; i++)
		ret = write_group(m, ids[i], out);
	free(ids);
	for (uint32_t id = 0; !ret && id < m->stacks.n; id++) {
		const struct group *g = &m->sums.group[id];

		if ((g->allocations || g->maps) && !group_cost(g, cost))
			ret = write_group(m, id, out);
	}
	return ret ? ret : ferror(out) ? -EIO : 0;
}
