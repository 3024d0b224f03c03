/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/diff.h"
#include "export/flame.h"
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "lib/hex.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/sums/weight.h"

#define MAX_FRAMES  12 /* of a stack in the text */
#define MAX_COMMAND 90 /* characters of the command line in the graph */

/* ------------------------------------------------------------------ text -- */

static void amount(const struct diff *d, uint64_t v, FILE *out)
{
	char buf[32];

	fputs(cost_is_bytes(d->cost) ? human_bytes(v, buf) : human_number(v, buf), out);
}

static void signed_amount(const struct diff *d, uint64_t before, uint64_t after, FILE *out)
{
	putc(after < before ? '-' : '+', out);
	amount(d, after < before ? before - after : after - before, out);
}

static void signed_blocks(uint64_t before, uint64_t after, FILE *out)
{
	fprintf(out, "%c%s", after < before ? '-' : '+',
		counted(after < before ? before - after : after - before, "block"));
}

static void write_row(const struct diff *d, const struct diff_row *r, FILE *out)
{
	bool full = d->side[0].m->shown.full;
	struct shown_list list = {0};
	struct shown_stack s;

	fprintf(out, "  %s", term_on(out, r->after > r->before ? TERM_BAD : TERM_GOOD));
	signed_amount(d, r->before, r->after, out);
	fputs(term_off(out), out);
	if (cost_is_bytes(d->cost)) {
		fputs(" in ", out);
		signed_blocks(r->before_count, r->after_count, out);
	}
	fputs(" (", out);
	amount(d, r->before, out);
	fputs(" -> ", out);
	amount(d, r->after, out);
	fputs(")\n", out);
	for (uint32_t at = r->node + 1; at; at = d->nodes.at[at - 1].parent) {
		if (shown_list_add(&list, &d->nodes.at[at - 1].frame, full, false)) {
			fputs("      (out of memory)\n", out);
			break;
		}
	}
	s = full ? shown_list_every(&list) : shown_list_fold(&list);
	text_frames(&s, full ? s.n : MAX_FRAMES, "      ", out);
	shown_list_free(&list);
}

static void write_list(const struct diff *d, bool grown, uint32_t top, FILE *out)
{
	uint32_t n = 0;

	vec_for_each (&d->rows, r) {
		if (r->after == r->before || (r->after > r->before) != grown)
			continue;
		if (n == top)
			break;
		if (!n++)
			text_bold(out, grown ? "grown most:" : "shrunk most:");
		write_row(d, r, out);
	}
	if (!n)
		fputs(grown ? "nothing grew\n" : "nothing shrank\n", out);
}

static void write_moment(const struct diff *d, const struct diff_side *s, FILE *out)
{
	fputs(printable(s->m->source.path), out);
	if (s->has_moment)
		fprintf(out, " at %.3f s", (double)s->at_ns / 1e9);
	if (!model_is_estimated(s->m))
		return;
	fprintf(out, " (%s: estimates, standard error ",
		s->m->info.sample_interval || s->m->info.overhead_ppm ? "a sample" : "thinned");
	if (s->variance > 0)
		amount(d, (uint64_t)group_error(s->variance), out);
	else
		fputs("not known", out);
	putc(')', out);
}

void diff_text(const struct diff *d, uint32_t top, FILE *out)
{
	fputs("before: ", out);
	write_moment(d, &d->side[0], out);
	fputs("\nafter:  ", out);
	write_moment(d, &d->side[1], out);
	fprintf(out, "\n%s: ", cost_text(d->cost));
	amount(d, d->side[0].cost, out);
	fputs(" -> ", out);
	amount(d, d->side[1].cost, out);
	fputs(" (", out);
	signed_amount(d, d->side[0].cost, d->side[1].cost, out);
	fprintf(out, "), %s -> %s\n", thousands(d->side[0].count),
		counted(d->side[1].count, cost_is_bytes(d->cost) ? "block" : "call"));
	text_suppressed(d->side[0].m, "suppressed before: ", out);
	if (d->side[1].m != d->side[0].m)
		text_suppressed(d->side[1].m, "suppressed after: ", out);
	write_list(d, true, top, out);
	write_list(d, false, top, out);
}

/* ------------------------------------------------------------------ JSON -- */

/* Return: frames of the stack of @r, outermost first, NULL-terminated; or NULL when out of memory.
 */
static const struct frame **frames_of(const struct diff *d, const struct diff_row *r)
{
	uint32_t n = d->nodes.at[r->node].depth + 1;
	const struct frame **f = calloc(n + 1, sizeof(struct frame *));

	for (uint32_t at = r->node + 1; f && at; at = d->nodes.at[at - 1].parent)
		f[--n] = &d->nodes.at[at - 1].frame;
	return f;
}

static void json_change(yajl_gen g, const char *key, uint64_t before, uint64_t after)
{
	json_name(g, key);
	yajl_gen_integer(g, (long long)(after - before));
}

static int json_row(yajl_gen g, const struct diff *d, const struct diff_row *r)
{
	const struct frame **f = frames_of(d, r);

	if (!f)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_number(g, "before", r->before);
	json_number(g, "after", r->after);
	json_change(g, "change", r->before, r->after);
	json_number(g, "before_count", r->before_count);
	json_number(g, "after_count", r->after_count);
	json_change(g, "change_count", r->before_count, r->after_count);
	json_name(g, "backtrace");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; f[i]; i++) {
		yajl_gen_map_open(g);
		json_text(g, "function", f[i]->function);
		if (f[i]->library)
			json_text(g, "library", f[i]->library);
		if (f[i]->source)
			json_text(g, "source", f[i]->source);
		if (f[i]->source && f[i]->line)
			json_number(g, "line", f[i]->line);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
	free(f);
	return 0;
}

static void json_side(yajl_gen g, const char *key, const struct diff_side *s)
{
	char id[33];

	json_name(g, key);
	yajl_gen_map_open(g);
	json_text(g, "id", hex_text(s->m->info.id, sizeof(s->m->info.id), id));
	json_text(g, "cmdline", s->m->info.cmdline);
	json_number(g, "pid", s->m->info.pid);
	json_timeval(g, "timestamp_relative", s->has_moment ? s->at_ns : s->m->facts.end_ns);
	json_number(g, "cost", s->cost);
	json_number(g, "count", s->count);
	json_number(g, "sample_interval", s->m->info.sample_interval);
	json_number(g, "suppressed_stacks", s->m->suppressed.stacks);
	json_number(g, "suppressed_leaked_bytes", s->m->suppressed.sum.live_bytes);
	if (s->variance > 0)
		json_number(g, "standard_error", (uint64_t)group_error(s->variance));
	yajl_gen_map_close(g);
}

int diff_json(const struct diff *d, FILE *out)
{
	static const char *const name[] = {"live", "allocated", "count", "peak", "temporary"};
	yajl_gen g = json_begin(out, true);
	int ret = 0;

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_text(g, "cost", name[d->cost]);
	json_side(g, "before", &d->side[0]);
	json_side(g, "after", &d->side[1]);
	json_name(g, "groups");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < d->rows.n && !ret; i++)
		ret = json_row(g, d, &d->rows.at[i]);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ret ? ret : ferror(out) ? -EIO : 0;
}

/* ------------------------------------------------------------------ folded -- */

int diff_folded(const struct diff *d, FILE *out)
{
	vec_for_each (&d->rows, r) {
		const struct frame **f = frames_of(d, r);

		if (!f)
			return -ENOMEM;
		for (uint32_t i = 0; f[i]; i++) {
			if (i)
				putc(';', out);
			folded_name(f[i]->function, out);
		}
		fprintf(out, " %llu %llu\n", (unsigned long long)r->before,
			(unsigned long long)r->after);
		free(f);
	}
	return ferror(out) ? -EIO : 0;
}

/* ------------------------------------------------------------------ graph -- */

static struct tree_node *tree_of(const struct diff *d)
{
	struct tree_node *root = tree_new();

	vec_for_each (&d->rows, r) {
		const struct frame **f = root ? frames_of(d, r) : NULL;
		uint64_t cost = r->before > r->after ? r->before : r->after;
		uint64_t count =
		    r->before_count > r->after_count ? r->before_count : r->after_count;
		struct tree_node *at = root;

		for (uint32_t i = 0; f && at; i++) {
			at->cost += cost;
			at->count += count;
			at->before += r->before;
			at->after += r->after;
			if (!f[i])
				break;
			at = tree_child(at, f[i]);
		}
		free(f);
		if (!f || !at) {
			tree_free(root);
			return NULL;
		}
	}
	if (root)
		tree_sort(root);
	return root;
}

int diff_flame(const struct diff *d, FILE *out)
{
	struct tree_node *root = tree_of(d);
	char title[160], a[32], b[32], *subtitle = NULL;
	struct flame f = {.title = title, .cost = d->cost, .differential = true};
	const struct diff_side *s = d->side;
	bool bytes = cost_is_bytes(d->cost);
	int ret = -ENOMEM;

	if (!root)
		return ret;
	snprintf(title, sizeof(title), "memprof: %s, %s before, %s after%s", cost_text(d->cost),
		 bytes ? human_bytes(s[0].cost, a) : human_number(s[0].cost, a),
		 bytes ? human_bytes(s[1].cost, b) : human_number(s[1].cost, b),
		 model_is_estimated(s[0].m) || model_is_estimated(s[1].m) ? " (estimated)" : "");
	if (asprintf(&subtitle,
		     "red grew, blue shrank; the width is that of the larger side; %.*s%s",
		     MAX_COMMAND, s[1].m->info.cmdline,
		     strlen(s[1].m->info.cmdline) > MAX_COMMAND ? ".." : "") >= 0) {
		f.subtitle = subtitle;
		ret = flame_write(&f, root, out);
		free(subtitle);
	}
	tree_free(root);
	return ret;
}
