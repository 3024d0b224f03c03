/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/heap/heap_retained.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/program.h"
#include "export/flame.h"
#include "export/output.h"
#include "export/pprof.h"
#include "export/text/terminal.h"
#include "export/tree.h"
#include "lib/human.h"
#include "lib/path.h"
#include "lib/printable.h"

#define TABLE_DEPTH 4
#define TABLE_COUNT 10
#define GRAPH_DEPTH 32
#define GRAPH_COUNT 100
#define LEAST	    0.005 /* below the roots, lines with a smaller part of the whole are combined */
#define LABEL	    384
#define WHAT_COLUMN 44 /* where the description of a line begins */

const char *retained_label(const struct retained_line *l, char *buf, size_t size)
{
	char number[32], bytes[24];

	switch (l->kind) {
	case RETAINED_ALL:
		snprintf(buf, size, "all");
		break;
	case RETAINED_SHARED:
		snprintf(buf, size, "shared by %s", l->name);
		break;
	case RETAINED_REST:
		snprintf(buf, size, "(%s smaller)", human_number(l->count, number));
		break;
	case RETAINED_BLOCKS:
		/* Names by shape have the size of nodes in them. */
		if (l->source_of == NAME_SHAPE && l->count == 1)
			snprintf(buf, size, "%s, %s", l->name, human_bytes(l->own, bytes));
		else if (l->source_of == NAME_SHAPE)
			snprintf(buf, size, "%s x %s", human_number(l->count, number), l->name);
		else if (l->count == 1)
			snprintf(buf, size, "%s of %s", l->name, human_bytes(l->own, bytes));
		else if (l->size)
			snprintf(buf, size, "%s x %s of %s", human_number(l->count, number),
				 l->name, human_bytes(l->size, bytes));
		else
			snprintf(buf, size, "%s x %s", human_number(l->count, number), l->name);
		break;
	default:
		snprintf(buf, size, "%s", l->name);
	}
	return buf;
}

/* ------------------------------------------------------------------ table -- */

static void write_roots(const struct retained_line *l, FILE *out)
{
	fprintf(out, l->count > 1 ? "; that one reached from %s: " : ", reached from %s: ",
		counted(l->roots, "root"));
	for (int i = 0; i < RETAINED_ROOTS && l->root[i]; i++)
		fprintf(out, "%s%s", i ? ", " : "", printable(l->root[i]));
	if (l->roots > RETAINED_ROOTS)
		fputs(" ...", out);
}

/* " (std::map<int, session>: 1,204,331 elements)" */
static void write_type(const struct retained_line *l, FILE *out)
{
	const struct container *c = &l->container.is;
	const char *name = l->container.name;

	if (!name && !l->type)
		return;
	/* The container can be a member of the variable. */
	fprintf(out, " (%s", printable(l->type ? l->type : name));
	if (name && l->type && strcmp(l->type, name) != 0)
		fprintf(out, "; %s", printable(name));
	if (name)
		fprintf(out, ": %s", counted(c->elements, "element"));
	if (name && c->unused)
		fprintf(out, ", %s unused", human(c->unused));
	if (name && c->buckets)
		fprintf(out, ", %.2f per bucket", (double)c->elements / (double)c->buckets);
	fputs(")", out);
}

/* Has the line above already said what container the blocks are, of which this one's name tells
 * their part? */
static bool is_said(const struct retained_line *l, const struct retained_line *above)
{
	return l->kind == RETAINED_BLOCKS && l->source_of == NAME_SHAPE && l->container.name &&
	       above->container.name && above->container.is.first == l->container.is.first;
}

static void write_what(const struct retained_line *l, const struct retained_line *above,
		       const struct heap_sites *sites, FILE *out)
{
	const struct heap_site *site = heap_sites_of(sites, l->number);
	char label[LABEL];

	fputs(printable(retained_label(l, label, sizeof(label))), out);
	if (!is_said(l, above))
		write_type(l, out);
	if (l->module)
		fprintf(out, "  [%s]", printable(program_library(l->module)));
	if (l->source)
		fprintf(out, "  %s:%u", printable(path_base(l->source)), l->line);
	if (l->kind == RETAINED_BLOCKS)
		fprintf(out, "%s %#" PRIx64, l->count > 1 ? ", such as" : " at", l->addr);
	if (l->roots > 1)
		write_roots(l, out);
	if (site)
		heap_write_site(site, out);
}

static void print_line(const struct retained_line *l, const struct retained_line *above,
		       uint32_t depth, const struct heap_sites *sites)
{
	const bool root = l->kind == RETAINED_HOLDER;
	char *what = NULL;
	size_t size, column = WHAT_COLUMN + 2 * (size_t)depth;
	FILE *out = open_memstream(&what, &size);

	if (out) {
		write_what(l, above, sites, out);
		fclose(out);
	}
	printf("%s%11s%s %11s %10s", term_on(stdout, TERM_AMOUNT), human(l->bytes),
	       term_off(stdout), thousands(l->blocks),
	       l->own || l->size ? human(root ? l->size : l->own) : "");
	printf(" %5.0f %%  %*s%s", l->bytes ? 100.0 * (double)l->exact / (double)l->bytes : 100.0,
	       (int)(2 * depth), "", root ? term_on(stdout, TERM_BOLD) : "");
	term_line(stdout, column, column + 4, "%s", what ? what : "");
	fputs(root ? term_off(stdout) : "", stdout);
	free(what);
}

/* How much of the lines is printed. */
struct limits {
	uint32_t levels, count;
	uint64_t least; /* bytes, below the roots */
	const struct heap_sites *sites;
};

/* Prints what is below @l.  Recursion is as deep as the report. */
static void print_below(const struct retained_line *l, uint32_t depth, const struct limits *most)
{
	struct retained_line rest = {.kind = RETAINED_REST};
	uint32_t n = 0;

	for (const struct retained_line *c = l->child; c; c = c->next) {
		if (c->kind != RETAINED_REST && depth <= most->levels && n < most->count &&
		    (!depth || c->bytes >= most->least)) {
			n++;
			print_line(c, l, depth, most->sites);
			print_below(c, depth + 1, most);
			continue;
		}
		rest.count += c->kind == RETAINED_REST ? c->count : 1;
		rest.bytes += c->bytes;
		rest.blocks += c->blocks;
		rest.exact += c->exact;
	}
	if (rest.count && depth <= most->levels)
		print_line(&rest, l, depth, NULL);
}

static void print_head(const struct retained *r)
{
	printf("\n%s, %s; %s of them (%s) can be reached\n", counted(r->live_blocks, "live block"),
	       human(r->live_bytes), thousands(r->live_blocks - r->unreached_blocks),
	       human(r->live_bytes - r->unreached_bytes));
	if (r->unreached_blocks)
		term_line(stdout, 0, 2,
			  "nothing points to %s (%s) any more: memprof leaks tells what is leaked",
			  counted(r->unreached_blocks, "block"), human(r->unreached_bytes));
	if (r->unreadable_bytes)
		printf("%s could not be read: pointers in it are unknown\n",
		       human(r->unreadable_bytes));
	if (r->unwound < r->threads)
		printf("the stacks of %u of %s could not be unwound to their end: blocks are "
		       "shown by the thread where the frame is not known\n",
		       r->threads - r->unwound, counted(r->threads, "thread"));
	heap_print_notes(&r->notes);
}

void heap_print_notes(const struct block_notes *notes)
{
	vec_for_each (&notes->list, text)
		printf("%s\n", printable(*text));
}

static void print_path(const struct retained *r)
{
	char label[LABEL];

	if (!r->path.n)
		return;
	printf("\nkept by:\n");
	vec_for_each (&r->path, it) {
		const struct retained_line *l = *it;

		printf("  %s", printable(retained_label(l, label, sizeof(label))));
		if (l->module)
			printf("  [%s]", printable(program_library(l->module)));
		if (l->addr)
			printf(" at %#" PRIx64, l->addr);
		printf(", which retains %s", human(l->bytes));
		if (l->roots > 1)
			write_roots(l, stdout);
		printf("\n");
	}
}

static void print_table(const struct retained *r, const struct retained_request *q,
			const struct heap_sites *sites)
{
	const struct limits most = {q->depth ? q->depth : TABLE_DEPTH,
				    q->count ? q->count : TABLE_COUNT,
				    (uint64_t)(LEAST * (double)r->all->bytes), sites};

	printf("\n%s%11s %11s %10s %7s  %s%s\n", term_on(stdout, TERM_FAINT), "retained", "blocks",
	       "own", "exact", "kept by", term_off(stdout));
	print_below(r->all, 0, &most);
	if (!r->all->child)
		printf("nothing\n");
}

/* ------------------------------------------------------------------ graphs -- */

struct labels {
	VEC(char *) list;
};

/* Copies the lines below @l into the tree. */
static int add_nodes(struct labels *labels, struct tree_node *node, const struct retained_line *l)
{
	char label[LABEL];
	int ret = 0;

	node->cost = l->bytes;
	node->count = l->blocks;
	for (const struct retained_line *c = l->child; c && !ret; c = c->next) {
		struct tree_node *below = calloc(1, sizeof(*below));
		char *text = strdup(retained_label(c, label, sizeof(label)));

		if (!below || !text || vec_push(&labels->list, text)) {
			free(below);
			free(text);
			return -ENOMEM;
		}
		below->function = text;
		below->library = c->module ? program_library(c->module) : NULL;
		below->depth = node->depth + 1;
		below->next = node->child;
		node->child = below;
		ret = add_nodes(labels, below, c);
	}
	return ret;
}

static int write_flame(const struct tree_node *root, bool icicle,
		       const struct retained_about *about, FILE *out)
{
	char title[160], subtitle[160];
	struct flame f = {
	    .title = title, .subtitle = subtitle, .cost = COST_LEAKED, .icicle = icicle};

	snprintf(title, sizeof(title), "memprof: retained memory, %s in %s", human(root->cost),
		 counted(root->count, "block"));
	snprintf(subtitle, sizeof(subtitle), "%s (pid %d)", about->name, about->pid);
	return flame_write(&f, root, out);
}

/* Writes a line for each node, with what it has beyond its children. */
static void write_folded(const struct tree_node *n, char *path, size_t length, size_t size,
			 FILE *out)
{
	uint64_t own = n->cost;

	for (const struct tree_node *c = n->child; c; c = c->next) {
		char *text;
		size_t unused;
		FILE *f = open_memstream(&text, &unused);

		own -= c->cost < own ? c->cost : own;
		if (!f)
			continue;
		folded_name(c->function, f);
		if (fclose(f))
			continue;
		snprintf(path + length, size - length, "%s%s", length ? ";" : "", text);
		free(text);
		write_folded(c, path, strlen(path), size, out);
	}
	path[length] = 0;
	if (own && length)
		fprintf(out, "%s %" PRIu64 "\n", path, own);
}

static int write_collapsed(const struct tree_node *root, FILE *out)
{
	const size_t size = (RETAINED_MAX_DEPTH + 2) * LABEL * 4;
	char *path = calloc(1, size);

	if (!path)
		return -ENOMEM;
	write_folded(root, path, 0, size, out);
	free(path);
	return ferror(out) ? -EIO : 0;
}

static int write_one(const struct retained *r, const struct tree_node *root,
		     enum retained_output what, const struct retained_about *about, FILE *out)
{
	switch (what) {
	case RETAINED_FLAMEGRAPH:
	case RETAINED_ICICLE:
		return write_flame(root, what == RETAINED_ICICLE, about, out);
	case RETAINED_COLLAPSED:
		return write_collapsed(root, out);
	case RETAINED_PPROF:
		return pprof_write_tree(root, about->name, out);
	default:
		return retained_json(r, about, out);
	}
}

static int write_file(const struct retained *r, const struct tree_node *root,
		      enum retained_output what, const char *path,
		      const struct retained_about *about)
{
	struct mp_err err = {0};
	FILE *out = output_open(path, what == RETAINED_PPROF, &err);
	int ret, closed;

	if (!out)
		return complain(&err);
	ret = write_one(r, root, what, about, out);
	closed = output_close(out);
	ret = ret ? ret : closed;
	if (ret)
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, strerror(-ret));
	return ret ? MP_EXIT_OUTPUT : MP_EXIT_OK;
}

struct retained_options retained_needed(const struct retained_request *q)
{
	struct retained_options o = {
	    .depth = TABLE_DEPTH, .count = TABLE_COUNT, .of = q->of, .line_of = q->sites};

	for (int i = 0; i < RETAINED_OUTPUTS; i++) {
		if (q->file[i] || q->tree) {
			o.depth = GRAPH_DEPTH;
			o.count = GRAPH_COUNT;
		}
	}
	o.depth = q->depth ? q->depth : o.depth;
	o.count = q->count ? q->count : o.count;
	return o;
}

int retained_report(const struct retained *r, const struct retained_request *q,
		    const struct retained_about *about)
{
	struct tree_node *root = tree_new();
	struct labels labels = {0};
	int ret = root ? add_nodes(&labels, root, r->all) : -ENOMEM, status = MP_EXIT_OK;

	print_head(r);
	if (r->of_unreached)
		printf("\n%s is in a live block that nothing points to: no root keeps it\n",
		       printable(q->of));
	print_path(r);
	if (!ret) {
		tree_sort(root);
		if (q->tree) {
			printf("\nretained: ");
			tree_write(root, COST_LEAKED, LEAST, stdout);
		} else {
			print_table(r, q, about->sites);
		}
	}
	for (int i = 0; i < RETAINED_OUTPUTS && !ret && !status; i++) {
		if (q->file[i])
			status = write_file(r, root, (enum retained_output)i, q->file[i], about);
	}
	tree_free(root);
	vec_for_each (&labels.list, text)
		free(*text);
	vec_free(&labels.list);
	return ret ? complain(&(struct mp_err){.exit = MP_EXIT_FAILURE,
					       .what = "no memory for the report"})
		   : status;
}
