/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/symbol_gaps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "export/text/terminal.h"
#include "lib/debug_package.h"
#include "lib/debuginfod_urls.h"
#include "lib/hex.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/names/symbol_gaps.h"
#include "unwind/symbols/symbols.h"

#define SHOWN	    20u /* files */
#define SHOWN_BRIEF 3u
#define LEAST	    1.0 /* percent of the bytes that are worth a line */
#define PERCENT	    100.0
#define LINE	    256
#define INDENT	    12

/* What gives the symbols of a file. */
enum remedy {
	REMEDY_PACKAGE, /* Debian's package with the debug information */
	REMEDY_RPM,	/* the same, of a distribution with RPM packages */
	REMEDY_OWN,	/* no package has the file: the user built it */
	REMEDY_SERVER,	/* the file is not on this machine */
};

struct gap {
	const struct symbol_gap *of;
	enum remedy remedy;
	char package[96]; /* with the debug information; "": not known */
	char url[512];	  /* of the debug file on a server; "": it has none */
};

struct gaps {
	struct symbol_gaps found;
	VEC(struct gap) list; /* as found.list */
};

/* ------------------------------------------------------------------ remedies -- */

/* Does this machine have the file that was recorded? */
static bool is_here(const struct mp_module *m)
{
	int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool here = fd >= 0 && symbols_right_file(fd, m);

	if (fd >= 0)
		close(fd);
	return here;
}

static void set_url(struct gap *g)
{
	const struct mp_module *m = g->of->module;
	const char *server = debuginfod_urls(DEBUGINFOD_ALWAYS);
	size_t n = strcspn(server, " ");
	char id[2 * sizeof(m->build_id) + 1];

	while (n && server[n - 1] == '/')
		n--;
	if (m->build_id_len && g->remedy != REMEDY_OWN)
		snprintf(g->url, sizeof(g->url), "%.*s/buildid/%s/debuginfo", (int)n, server,
			 hex_text(m->build_id, m->build_id_len, id));
}

/* @owner: the package of the file; "": none */
static void set_remedy(struct gap *g, bool dpkg, const char *owner)
{
	if (!is_here(g->of->module))
		g->remedy = REMEDY_SERVER;
	else if (*owner)
		g->remedy = REMEDY_PACKAGE;
	else
		g->remedy = dpkg ? REMEDY_OWN : packages_are_rpm() ? REMEDY_RPM : REMEDY_SERVER;
	if (g->remedy == REMEDY_PACKAGE)
		package_with_debug(owner, g->package, sizeof(g->package));
	set_url(g);
}

static void gaps_free(struct gaps *g)
{
	vec_free(&g->found.list);
	vec_free(&g->list);
}

/* Return: false when out of memory. */
static bool gaps_find(const struct model *m, struct gaps *g)
{
	struct package_query *query;
	bool dpkg;
	size_t n;

	memset(g, 0, sizeof(*g));
	if (symbol_gaps_find(m, &g->found))
		return false;
	n = g->found.list.n;
	query = calloc(n + 1, sizeof(*query));
	for (size_t i = 0; query && i < n; i++) {
		struct gap gap = {.of = &g->found.list.at[i]};

		query[i].path = gap.of->module->path;
		if (vec_push(&g->list, gap))
			break;
	}
	if (!query || g->list.n < n) {
		free(query);
		gaps_free(g);
		return false;
	}
	dpkg = packages_find(query, n);
	for (size_t i = 0; i < n; i++)
		set_remedy(&g->list.at[i], dpkg, query[i].owner);
	free(query);
	return true;
}

/* ------------------------------------------------------------------ brief text -- */

static double share(const struct gaps *g, uint64_t bytes)
{
	return g->found.bytes ? PERCENT * (double)bytes / (double)g->found.bytes : 0;
}

/* Is the gap worth a line?  The lines of libc and the like are not. */
static bool matters(const struct gaps *g, const struct gap *one, bool function)
{
	if (function)
		return share(g, one->of->bytes_no_function) >= LEAST;
	return one->of->own && share(g, one->of->bytes_no_line) >= LEAST;
}

/* Writes "redis-server: 4 of 96 addresses, in stacks of 83 % of the bytes; libfoo.so: ...".
 * Return: the number of files. */
static uint32_t write_files(const struct gaps *g, bool function, FILE *out)
{
	uint32_t n = 0;

	vec_for_each (&g->list, one) {
		const struct symbol_gap *of = one->of;
		uint64_t lacking = function ? of->no_function : of->no_line;
		double part = share(g, function ? of->bytes_no_function : of->bytes_no_line);

		if (!matters(g, one, function))
			continue;
		if (!n)
			fprintf(out, "%s    %s: %s of %s, in stacks of %.0f %% of the bytes",
				function ? "no names" : "no lines", printable(of->library),
				thousands(lacking), counted(of->addresses, "address"), part);
		else if (n < SHOWN_BRIEF)
			fprintf(out, "; %s: %s of %s, %.0f %%", printable(of->library),
				thousands(lacking), thousands(of->addresses), part);
		n++;
	}
	if (n > SHOWN_BRIEF)
		fprintf(out, "; %s more", counted(n - SHOWN_BRIEF, "file"));
	return n;
}

static uint32_t brief_files(const struct gaps *g, bool function, FILE *out)
{
	char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	uint32_t n;

	if (!f)
		return 0;
	n = write_files(g, function, f);
	if (!fclose(f) && n)
		term_line(out, 0, INDENT, "%s", line);
	free(line);
	return n;
}

/* Is @one the first file with its package? */
static bool is_first(const struct gaps *g, const struct gap *one, bool function)
{
	for (const struct gap *before = g->list.at; before < one; before++) {
		if (matters(g, before, function) && !strcmp(before->package, one->package))
			return false;
	}
	return true;
}

/* Adds @word to the list of @n words, of which at most SHOWN_BRIEF are shown. */
static void list_word(char *list, const char *separator, const char *word, uint32_t *n)
{
	size_t length = strlen(list);

	if (*n < SHOWN_BRIEF)
		snprintf(list + length, LINE - length, "%s%s", *n ? separator : "", word);
	else if (*n == SHOWN_BRIEF)
		snprintf(list + length, LINE - length, " ...");
	++*n;
}

static void brief_remedies(const struct gaps *g, bool function, const char *path, FILE *out)
{
	char packages[LINE] = "", own[LINE] = "";
	uint32_t n_packages = 0, n_own = 0, remote = 0, rpm = 0;

	vec_for_each (&g->list, one) {
		if (!matters(g, one, function))
			continue;
		remote += *one->url != 0;
		rpm += one->remedy == REMEDY_RPM;
		if (one->remedy == REMEDY_PACKAGE && is_first(g, one, function))
			list_word(packages, " ", one->package, &n_packages);
		if (one->remedy == REMEDY_OWN)
			list_word(own, ", ", printable(one->of->library), &n_own);
	}
	if (n_packages)
		term_line(out, 0, INDENT, "%*sapt install %s (archive debian-debug)", INDENT, "",
			  packages);
	if (rpm)
		fputs("            dnf debuginfo-install PACKAGE (rpm -qf FILE)\n", out);
	if (remote)
		term_line(out, 0, INDENT, "%*s%smemprof symbolize %s --debuginfod -o OUT", INDENT,
			  "", n_packages || rpm ? "or: " : "", printable(path));
	if (n_own)
		term_line(out, 0, INDENT,
			  "%*s%s: compile with -g, or memprof symbolize -d FOLDER with the debug "
			  "file",
			  INDENT, "", own);
}

void symbol_gaps_brief(const struct model *m, FILE *out)
{
	bool function = true;
	struct gaps g;

	if (!gaps_find(m, &g))
		return;
	if (!brief_files(&g, true, out))
		function = !brief_files(&g, false, out);
	brief_remedies(&g, function, m->source.path, out);
	gaps_free(&g);
}

/* ------------------------------------------------------------------ all -- */

static void write_remedy(const struct gap *g, FILE *out)
{
	const char *remedy = "not on this machine";

	if (*g->package)
		remedy = g->package;
	else if (g->remedy == REMEDY_RPM)
		remedy = "dnf debuginfo-install";
	else if (g->remedy == REMEDY_OWN)
		remedy = "in no package: compile with -g, or memprof symbolize -d FOLDER with the "
			 "debug file";
	term_line(out, 0, INDENT, "%*s%s%s%s%s", INDENT, "", *g->package ? "package " : "", remedy,
		  *g->url ? "; " : "", printable(g->url));
}

void symbol_gaps_text(const struct model *m, FILE *out)
{
	struct gaps g;

	if (!gaps_find(m, &g))
		return;
	if (g.list.n)
		fprintf(out, "symbols     %s in stacks not complete:\n", counted(g.list.n, "file"));
	for (size_t i = 0; i < g.list.n && i < SHOWN; i++) {
		const struct symbol_gap *of = g.list.at[i].of;

		term_line(out, 0, INDENT,
			  "%*s%s: of %s %s without a function (stacks of %s), %s without a line "
			  "(%s)",
			  INDENT, "", printable(of->library), counted(of->addresses, "address"),
			  thousands(of->no_function), human(of->bytes_no_function),
			  thousands(of->no_line), human(of->bytes_no_line));
		write_remedy(&g.list.at[i], out);
	}
	if (g.list.n > SHOWN)
		fprintf(out, "%*sand %s (--json has all)\n", INDENT, "",
			counted(g.list.n - SHOWN, "file"));
	gaps_free(&g);
}

void symbol_gaps_json(yajl_gen gen, const struct model *m)
{
	char id[2 * sizeof(((struct mp_module *)0)->build_id) + 1];
	struct gaps g;

	if (!gaps_find(m, &g))
		memset(&g, 0, sizeof(g));
	json_name(gen, "missing_symbols");
	yajl_gen_array_open(gen);
	vec_for_each (&g.list, one) {
		const struct symbol_gap *of = one->of;
		const struct mp_module *module = of->module;

		yajl_gen_map_open(gen);
		json_text(gen, "library", of->library);
		json_text(gen, "path", module->path);
		json_text(gen, "build_id",
			  module->build_id_len
			      ? hex_text(module->build_id, module->build_id_len, id)
			      : NULL);
		json_number(gen, "addresses", of->addresses);
		json_number(gen, "without_function", of->no_function);
		json_number(gen, "without_line", of->no_line);
		json_number(gen, "bytes_without_function", of->bytes_no_function);
		json_number(gen, "bytes_without_line", of->bytes_no_line);
		json_text(gen, "debug_package", *one->package ? one->package : NULL);
		json_text(gen, "debug_url", *one->url ? one->url : NULL);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
	gaps_free(&g);
}
