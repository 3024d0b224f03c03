/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Symbols and unwind tables of the files that are mapped in a process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "attach/proc/procfs.h"
#include "control/doctor/findings.h"
#include "inject/hooks/stripped.h"
#include "lib/debug_package.h"
#include "lib/human.h"
#include "model/names/frames.h"

#define MOST_NAMED    6
#define MOST_PACKAGES 4

static bool is_known(const struct doctor *d, const char *path)
{
	vec_for_each (&d->modules, m) {
		if (!strcmp(m->path, path))
			return true;
	}
	return false;
}

static void read_file(struct doctor_module *m, int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL), *debug;
	int debug_fd = -1;

	m->readable = elf && elf_kind(elf) == ELF_K_ELF;
	if (m->readable) {
		m->facts = elf_facts(elf);
		debug = stripped_debug_file(elf, m->path, &debug_fd);
		m->debug_file = debug != NULL;
		if (debug) {
			elf_end(debug);
			close(debug_fd);
		}
	}
	elf_end(elf);
}

static void read_module(struct notes *n, pid_t pid, const struct map *map,
			const struct proc_program *p)
{
	struct doctor_module m = {.path = strdup(map->path)};
	int fd = m.path ? map_open(pid, map) : -1;

	snprintf(m.name, sizeof(m.name), "%s", library_name(map->path, p->executable, p->called));
	if (fd >= 0) {
		read_file(&m, fd);
		close(fd);
	}
	if (!m.path || vec_push(&n->d->modules, m)) {
		free(m.path);
		n->failed = true;
	}
}

static bool unreadable(const struct doctor_module *m)
{
	return !m->readable;
}

static bool no_names(const struct doctor_module *m)
{
	return m->readable && !m->facts.symtab && !m->facts.minidebug && !m->debug_file;
}

static bool no_lines(const struct doctor_module *m)
{
	return m->readable && !m->facts.lines && !m->debug_file;
}

static bool no_tables(const struct doctor_module *m)
{
	return m->readable && !m->facts.unwind;
}

static bool no_build_id(const struct doctor_module *m)
{
	return m->readable && !m->facts.build_id_len;
}

/* Lists the modules of which @is is true.  Return: their number. */
static size_t select_modules(const struct doctor *d, bool (*is)(const struct doctor_module *),
			     char *list, size_t size)
{
	size_t count = 0, length;

	list[0] = 0;
	vec_for_each (&d->modules, m) {
		if (!is(m))
			continue;
		length = strlen(list);
		if (count < MOST_NAMED)
			snprintf(list + length, size - length, "%s%s", count ? ", " : "", m->name);
		else if (count == MOST_NAMED)
			snprintf(list + length, size - length, " ...");
		count++;
	}
	return count;
}

/* Adds the package with the debug information of file @i of the @query to the @n in @list. */
static void add_package(char *list, size_t size, const struct package_query *query, size_t i,
			size_t *n)
{
	char name[128];
	size_t length = strlen(list);

	if (!*query[i].owner)
		return;
	for (size_t before = 0; before < i; before++) {
		if (!strcmp(query[before].owner, query[i].owner))
			return;
	}
	package_with_debug(query[i].owner, name, sizeof(name));
	if (*n < MOST_PACKAGES)
		snprintf(list + length, size - length, " %s", name);
	else if (*n == MOST_PACKAGES)
		snprintf(list + length, size - length, " ...");
	++*n;
}

/* Names the packages that give the modules of which @is is true what they lack.  Return: @list. */
static const char *debug_packages(const struct doctor *d, bool (*is)(const struct doctor_module *),
				  char *list, size_t size)
{
	struct package_query *query = calloc(d->modules.n + 1, sizeof(*query));
	size_t n = 0, packages = 0;

	snprintf(list, size, "compile with -g, attach --debuginfod, or apt install");
	vec_for_each (&d->modules, m) {
		if (query && is(m))
			query[n++].path = m->path;
	}
	if (n)
		packages_find(query, n);
	for (size_t i = 0; i < n; i++)
		add_package(list, size, query, i, &packages);
	if (!packages)
		snprintf(list, size,
			 "compile with -g, install their debug symbols, or attach "
			 "--debuginfod");
	free(query);
	return list;
}

/* @lack: what modules have none of, @effect: what follows from that. */
static void judge(struct notes *n, bool (*is)(const struct doctor_module *), const char *topic,
		  const char *lack, const char *effect, const char *advice, const char *good)
{
	char list[300];
	size_t count = select_modules(n->d, is, list, sizeof(list));

	if (count)
		note(n, VERDICT_WARNING, MP_EXIT_OK, topic, advice, "%zu of %s %s: %s; %s", count,
		     counted(n->d->modules.n, "file"), lack, list, effect);
	else
		note(n, VERDICT_OK, MP_EXIT_OK, topic, "", "%s", good);
}

void doctor_modules(struct notes *n, const struct target *t)
{
	char packages[200];
	struct proc_program program;
	struct maps maps;

	if (maps_read(t->pid, &maps))
		return;
	elf_version(EV_CURRENT);
	proc_program_read(t->pid, &program);
	vec_for_each (&maps.list, map) {
		if (map->exec && map->path[0] == '/' && !is_known(n->d, map->path))
			read_module(n, t->pid, map, &program);
	}
	maps_free(&maps);
	judge(n, unreadable, "files", "cannot be read", "their functions and tables are not known",
	      "run memprof as root of the host", "all mapped programs and libraries can be read");
	judge(n, no_names, "symbols", "have no .symtab and no debug file",
	      "only their exported functions have names",
	      debug_packages(n->d, no_names, packages, sizeof(packages)),
	      "all functions have names");
	judge(n, no_lines, "lines", "have no debug information",
	      "their functions are shown without file and line",
	      debug_packages(n->d, no_lines, packages, sizeof(packages)),
	      "files and lines are known");
	judge(n, no_tables, "unwind tables", "have no .eh_frame",
	      "stacks through them are found by their code, or end there",
	      "compile with -fasynchronous-unwind-tables", "all files contain unwind tables");
	judge(n, no_build_id, "build-ids", "have no build-id",
	      "debug files for them are not found later", "link with -Wl,--build-id",
	      "all files have a build-id");
}
