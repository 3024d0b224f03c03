/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/sum_lists.h"

#include <errno.h>
#include "export/lists/libraries.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/model.h"

/* ------------------------------------------------------------------ libraries -- */

static void library_sums(yajl_gen g, const char *name, const struct group *s)
{
	json_name(g, name);
	yajl_gen_map_open(g);
	json_number(g, "allocated_count", s->allocations);
	json_number(g, "size", s->allocated_bytes);
	json_number(g, "leaked_count", s->live_blocks);
	json_number(g, "leaked_size", s->live_bytes);
	json_number(g, "temporary_count", s->temporary);
	json_number(g, "peak_size", s->peak_bytes);
	yajl_gen_map_close(g);
}

static void libraries_json(const struct libraries *l, yajl_gen g)
{
	json_name(g, "libraries");
	yajl_gen_array_open(g);
	vec_for_each (&l->at, lib) {
		if (!lib->anywhere.allocations)
			continue;
		yajl_gen_map_open(g);
		json_text(g, "library", lib->name);
		library_sums(g, "direct", &lib->direct);
		library_sums(g, "anywhere", &lib->anywhere);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void libraries_text(const struct libraries *l, FILE *out)
{
	char a[24], b[24], c[24], d[24];

	fprintf(out, "%-32s %37s   %21s\n%-32s %10s %10s %10s %4s   %10s %10s\n", "",
		"its own calls of the allocator", "anywhere on the stack", "library", "allocated",
		"live", "at peak", "", "allocated", "live");
	vec_for_each (&l->at, lib) {
		if (!lib->anywhere.allocations)
			continue;
		fprintf(out, "%-32s %10s %10s %10s %4s   %10s %10s\n",
			lib->name ? printable(lib->name) : "(unknown)",
			human_bytes(lib->direct.allocated_bytes, a),
			human_bytes(lib->direct.live_bytes, b),
			human_bytes(lib->direct.peak_bytes, c), "",
			human_bytes(lib->anywhere.allocated_bytes, d),
			human_bytes(lib->anywhere.live_bytes, (char[24]){0}));
	}
}

/* ------------------------------------------------------------------ threads -- */

static void threads_json(const struct model *m, yajl_gen g)
{
	json_name(g, "threads");
	yajl_gen_array_open(g);
	vec_for_each (&m->tasks.threads, t) {
		yajl_gen_map_open(g);
		json_number(g, "thread", t->tid);
		json_text(g, "name", t->name);
		json_number(g, "allocated_count", t->allocations);
		json_number(g, "size", t->allocated_bytes);
		json_number(g, "leaked_count", t->live_blocks);
		json_number(g, "leaked_size", t->live_bytes);
		json_number(g, "temporary_count", t->temporary);
		json_number(g, "frees", t->frees);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void threads_text(const struct model *m, FILE *out)
{
	char a[24], b[24];

	fprintf(out, "%8s  %-16s %10s %10s %10s %10s %10s %10s\n", "thread", "name", "allocated",
		"blocks", "live", "blocks", "temporary", "frees");
	vec_for_each (&m->tasks.threads, t) {
		fprintf(out, "%8u  %-16s %10s %10llu %10s %10llu %10llu %10llu\n", t->tid,
			t->name ? printable(t->name) : "?", human_bytes(t->allocated_bytes, a),
			(unsigned long long)t->allocations, human_bytes(t->live_bytes, b),
			(unsigned long long)t->live_blocks, (unsigned long long)t->temporary,
			(unsigned long long)t->frees);
	}
}

/* ------------------------------------------------------------------ sizes -- */

static uint64_t class_min(uint32_t c)
{
	return c < 3 ? c : (1ull << (c - 2)) + 1;
}

static uint64_t class_max(uint32_t c)
{
	return c < 2 ? c : 1ull << (c - 1);
}

static void sizes_json(const struct model *m, yajl_gen g)
{
	json_name(g, "sizes");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		const struct size_class *c = &m->sums.size_class[i];

		if (!c->allocations)
			continue;
		yajl_gen_map_open(g);
		json_number(g, "size_min", class_min(i));
		json_number(g, "size_max", class_max(i));
		json_number(g, "allocated_count", c->allocations);
		json_number(g, "size", c->allocated_bytes);
		json_number(g, "usable_size", c->usable_bytes);
		json_number(g, "leaked_count", c->live_blocks);
		json_number(g, "leaked_size", c->live_bytes);
		json_number(g, "leaked_usable_size", c->live_usable);
		json_number(g, "temporary_count", c->temporary);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void sizes_text(const struct model *m, FILE *out)
{
	char a[24], b[24], c[24], range[64];

	fprintf(out, "%-24s %10s %10s %10s %10s %10s %10s\n", "requested bytes", "allocated",
		"blocks", "temporary", "live", "blocks", "unused");
	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		const struct size_class *s = &m->sums.size_class[i];

		if (!s->allocations)
			continue;
		if (class_min(i) == class_max(i))
			snprintf(range, sizeof(range), "%llu", (unsigned long long)class_max(i));
		else
			snprintf(range, sizeof(range), "%llu-%llu",
				 (unsigned long long)class_min(i),
				 (unsigned long long)class_max(i));
		fprintf(out, "%-24s %10s %10llu %10llu %10s %10llu %10s\n", range,
			human_bytes(s->allocated_bytes, a), (unsigned long long)s->allocations,
			(unsigned long long)s->temporary, human_bytes(s->live_bytes, b),
			(unsigned long long)s->live_blocks,
			human_bytes(s->live_usable - s->live_bytes, c));
	}
	fputs("unused: bytes of live blocks beyond the requested size.  Free\nmemory between "
	      "blocks is not in a recording.\n",
	      out);
}

/* ------------------------------------------------------------------ all -- */

int sum_lists_write(struct model *m, enum sums_by by, bool json, FILE *out)
{
	struct libraries l = {0};
	yajl_gen g = NULL;

	if ((by == SUMS_LIBRARY && libraries_sum(m, &l)) ||
	    (json && !(g = json_begin(out, true)))) {
		vec_free(&l.at);
		return -ENOMEM;
	}
	if (g)
		yajl_gen_map_open(g);
	switch (by) {
	case SUMS_LIBRARY:
		g ? libraries_json(&l, g) : libraries_text(&l, out);
		break;
	case SUMS_THREAD:
		g ? threads_json(m, g) : threads_text(m, out);
		break;
	default:
		g ? sizes_json(m, g) : sizes_text(m, out);
	}
	if (g) {
		yajl_gen_map_close(g);
		yajl_gen_free(g);
	}
	vec_free(&l.at);
	return ferror(out) ? -EIO : 0;
}
