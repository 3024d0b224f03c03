/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/map_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "formats/file.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/model.h"

/* The mappings of a process with the same name: a file's path, "[heap]", "[anonymous]" ... */
struct named_maps {
	const char *name;
	uint32_t process;		     /* process number */
	uint32_t mappings;		     /* at the last snapshot of the mappings */
	uint64_t size, rss, anonymous, swap; /* bytes, at the last snapshot */
	uint64_t first_rss, most_rss, most_ns;
};

/* In a merged recording of several processes, addresses include the process number. */
static uint32_t process_of(const struct model *m, const struct mp_map_usage *u)
{
	uint64_t number = m->tasks.processes.n ? u->start >> MP_PROCESS_SHIFT : 0;

	return number < m->tasks.processes.n ? (uint32_t)number : 0;
}

static uint32_t pid_of(const struct model *m, uint32_t process)
{
	return m->tasks.processes.n ? m->tasks.processes.at[process].of.pid : m->info.pid;
}

static struct named_maps *entry_of(struct named_maps *list, uint32_t *n, uint32_t process,
				   const char *name)
{
	for (uint32_t i = 0; i < *n; i++) {
		if (list[i].process == process && !strcmp(list[i].name, name))
			return &list[i];
	}
	list[*n] = (struct named_maps){.name = name, .process = process};
	return &list[(*n)++];
}

/* Handles one snapshot of the mappings: entries @from to @to of the model's list. */
static void take_look(const struct model *m, size_t from, size_t to, struct named_maps *list,
		      uint32_t *n)
{
	uint32_t process = process_of(m, &m->facts.map_usage.at[from]);
	bool first = true;

	for (uint32_t i = 0; i < *n; i++) {
		if (list[i].process != process)
			continue;
		first = false;
		list[i] = (struct named_maps){.name = list[i].name,
					      .process = process,
					      .first_rss = list[i].first_rss,
					      .most_rss = list[i].most_rss,
					      .most_ns = list[i].most_ns};
	}
	for (size_t i = from; i < to; i++) {
		const struct mp_map_usage *u = &m->facts.map_usage.at[i];
		struct named_maps *e = entry_of(list, n, process, map_usage_name(u));

		e->mappings++;
		e->size += u->end - u->start;
		e->rss += u->rss;
		e->anonymous += u->anonymous;
		e->swap += u->swap;
	}
	for (uint32_t i = 0; i < *n; i++) {
		if (list[i].process != process)
			continue;
		if (first)
			list[i].first_rss = list[i].rss;
		if (list[i].rss > list[i].most_rss) {
			list[i].most_rss = list[i].rss;
			list[i].most_ns = m->facts.map_usage.at[from].time_ns;
		}
	}
}

static size_t end_of_look(const struct model *m, size_t from)
{
	size_t to = from;

	while (to < m->facts.map_usage.n &&
	       m->facts.map_usage.at[to].time_ns == m->facts.map_usage.at[from].time_ns &&
	       process_of(m, &m->facts.map_usage.at[to]) ==
		   process_of(m, &m->facts.map_usage.at[from]))
		to++;
	return to;
}

static int most_resident(const void *a, const void *b)
{
	const struct named_maps *x = a, *y = b;

	if (x->rss != y->rss)
		return x->rss < y->rss ? 1 : -1;
	if (x->most_rss != y->most_rss)
		return x->most_rss < y->most_rss ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Return: number of entries in *@out (to be freed by the caller), most resident first; 0 with *@out
 * NULL if the recording has no snapshots of the mappings, or when out of memory. */
static uint32_t by_name(const struct model *m, struct named_maps **out)
{
	uint32_t n = 0;

	*out = m->facts.map_usage.n ? calloc(m->facts.map_usage.n, sizeof(**out)) : NULL;
	if (!*out)
		return 0;
	for (size_t from = 0, to; from < m->facts.map_usage.n; from = to) {
		to = end_of_look(m, from);
		take_look(m, from, to, *out, &n);
	}
	qsort(*out, n, sizeof(**out), most_resident);
	return n;
}

static void put_looks(const struct model *m, yajl_gen g)
{
	json_name(g, "map_usage");
	yajl_gen_array_open(g);
	for (size_t from = 0, to; from < m->facts.map_usage.n; from = to) {
		to = end_of_look(m, from);
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", m->facts.map_usage.at[from].time_ns);
		json_number(g, "pid", pid_of(m, process_of(m, &m->facts.map_usage.at[from])));
		json_name(g, "maps");
		yajl_gen_array_open(g);
		for (size_t i = from; i < to; i++) {
			const struct mp_map_usage *u = &m->facts.map_usage.at[i];

			yajl_gen_map_open(g);
			json_address(g,
				     u->start - ((uint64_t)process_of(m, u) << MP_PROCESS_SHIFT));
			json_number(g, "size", u->end - u->start);
			json_text(g, "name", map_usage_name(u));
			json_boolean(g, "is_readable", u->prot & PROT_READ);
			json_boolean(g, "is_writable", u->prot & PROT_WRITE);
			json_boolean(g, "is_executable", u->prot & PROT_EXEC);
			json_number(g, "rss", u->rss);
			json_number(g, "anonymous", u->anonymous);
			json_number(g, "swap", u->swap);
			yajl_gen_map_close(g);
		}
		yajl_gen_array_close(g);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static int write_json(const struct model *m, FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	put_looks(m, g);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	fputc('\n', out);
	return 0;
}

int map_usage_write(const struct model *m, bool json, FILE *out)
{
	char a[24], b[24], c[24], d[24], e[24], f[24];
	struct named_maps *list;
	uint32_t n;

	if (json)
		return write_json(m, out);
	if (!m->facts.map_usage.n) {
		fputs("the recording has no list of the mappings (its process had ended)\n", out);
		return 0;
	}
	n = by_name(m, &list);
	if (!n)
		return -ENOMEM;
	fprintf(out, "%10s %10s %10s %10s %10s %10s %5s  %s%s\n", "resident", "at first", "highest",
		"anonymous", "swap", "size", "maps", m->tasks.processes.n ? "process  " : "",
		"name");
	for (uint32_t i = 0; i < n; i++) {
		fprintf(out, "%10s %10s %10s %10s %10s %10s %5u  ", human_bytes(list[i].rss, a),
			human_bytes(list[i].first_rss, b), human_bytes(list[i].most_rss, c),
			human_bytes(list[i].anonymous, d), human_bytes(list[i].swap, e),
			human_bytes(list[i].size, f), list[i].mappings);
		if (m->tasks.processes.n)
			fprintf(out, "%7u  ", pid_of(m, list[i].process));
		fprintf(out, "%s\n", printable(list[i].name));
	}
	free(list);
	return 0;
}
