/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/dynamic.h"

#include <errno.h>
#include <stdio.h>
#include "export/text/ascii_tree.h"
#include "lib/path.h"
#include "lib/printable.h"
#include "server/answers/ending.h"
#include "server/answers/initializers.h"

/* ------------------------------------------------------------------ JSON -- */

static void write_sums(yajl_gen g, uint64_t count, uint64_t size)
{
	json_number(g, "count", count);
	json_number(g, "size", size);
}

static void write_file(yajl_gen g, const struct initializers *i, const struct initializer_file *f)
{
	json_string(g, f->file);
	yajl_gen_map_open(g);
	write_sums(g, f->count, f->size);
	json_name(g, "per_line");
	yajl_gen_map_open(g);
	for (size_t k = f->first; k < f->first + f->n; k++) {
		const struct initializer_line *line = &i->lines.at[k];
		char number[16];

		snprintf(number, sizeof(number), "%u", line->line);
		json_name(g, number);
		yajl_gen_map_open(g);
		write_sums(g, line->count, line->size);
		yajl_gen_map_close(g);
	}
	yajl_gen_map_close(g);
	yajl_gen_map_close(g);
}

static int write_json(struct answer *a, const struct initializers *i, struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	write_sums(g, i->count, i->size);
	json_name(g, "per_file");
	yajl_gen_map_open(g);
	vec_for_each (&i->files, f)
		write_file(g, i, f);
	yajl_gen_map_close(g);
	answer_estimated(a, g);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

/* ------------------------------------------------------------------ text -- */

static void write_row(FILE *out, uint64_t size, uint64_t count, const char *branch)
{
	char text[40];

	fprintf(out, "%s %-5llu %s", ascii_size(size, text, sizeof(text)),
		(unsigned long long)count, branch);
}

static int write_text(struct answer *a, const struct initializers *i, struct mp_err *err)
{
	fprintf(a->out, "%-10s %-5s %s\n", "SIZE", "COUNT", "SOURCE");
	vec_for_each (&i->files, f) {
		write_row(a->out, f->size, f->count, "");
		fprintf(a->out, "%s\n", printable(f->file));
		for (size_t k = f->first; k < f->first + f->n; k++) {
			const struct initializer_line *line = &i->lines.at[k];

			write_row(a->out, line->size, line->count,
				  k + 1 < f->first + f->n ? "├─" : "└─");
			fprintf(a->out, "%s:%u\n", printable(path_base(f->file)), line->line);
		}
	}
	if (ferror(a->out))
		return mp_fail(err, MP_EXIT_OUTPUT, -EIO, "the client did not read the answer");
	return 0;
}

/* ------------------------------------------------------------------ endpoints -- */

static int write_answer(struct answer *a, bool constants, bool text, struct mp_err *err)
{
	struct initializers i;
	int ret = initializers_find(a->m, constants, &i) ? answer_no_memory(err) : 0;

	if (!ret)
		ret = text ? write_text(a, &i, err) : write_json(a, &i, err);
	initializers_free(&i);
	return ret;
}

int answer_dynamic_constants(struct answer *a, struct mp_err *err)
{
	return write_answer(a, true, false, err);
}

int answer_dynamic_statics(struct answer *a, struct mp_err *err)
{
	return write_answer(a, false, false, err);
}

int answer_dynamic_constants_ascii_tree(struct answer *a, struct mp_err *err)
{
	return write_answer(a, true, true, err);
}

int answer_dynamic_statics_ascii_tree(struct answer *a, struct mp_err *err)
{
	return write_answer(a, false, true, err);
}
