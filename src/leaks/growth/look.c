/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/look.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "leaks/growth/heap_types.h"
#include "leaks/types/types.h"
#include "lib/deadline.h"
#include "lib/fnv.h"
#include "lib/hex.h"
#include "lib/path.h"
#include "unwind/build_id.h"

/* Lines with a smaller part of all live bytes than 1 / SMALLEST are part of the rest. */
#define SMALLEST (1u << 20)

struct look_line *look_line_new(enum retained_kind kind)
{
	struct look_line *l = calloc(1, sizeof(*l));

	if (l)
		l->kind = kind;
	return l;
}

/* Recursion is as deep as the look. */
void look_line_free(struct look_line *l)
{
	struct look_line *next;

	if (!l)
		return;
	for (struct look_line *c = l->child; c; c = next) {
		next = c->next;
		look_line_free(c);
	}
	free(l->name);
	free(l->module);
	free(l->source);
	free(l->reached);
	free(l);
}

bool look_same_process(const struct look *a, const struct look *b)
{
	return a->boot && b->boot && !strcmp(a->boot, b->boot) && a->started &&
	       a->started == b->started && a->pid == b->pid && a->space == b->space;
}

void look_set_builds(struct look *l)
{
	for (struct look_line *c = l->all->child; c; c = c->next) {
		if (c->kind != RETAINED_HOLDER || c->holder != HOLDER_PLACE || !c->module)
			continue;
		vec_for_each (&l->modules, m)
			c->build = !strcmp(m->name, c->module) ? m->build_id : c->build;
	}
}

/* ------------------------------------------------------------- names -- */

/* Writes "*" for each run of digits.  @to: has room for @from. */
static void without_digits(const char *from, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)from[i]))
			*to++ = from[i];
		else if (!i || !isdigit((unsigned char)from[i - 1]))
			*to++ = '*';
	}
	*to = 0;
}

/* "t_buffer of thread 12 (worker-3)" to "t_buffer of threads worker-*"; in a core, without names,
 * "t_buffer of a thread". */
static char *of_thread(const char *name, pid_t tid)
{
	char id[32], *found = NULL, *to;
	const char *rest, *end;

	snprintf(id, sizeof(id), "thread %d", tid);
	/* The last one: a function can have such a name, too. */
	for (const char *at = name; (at = strstr(at, id)); at++)
		found = (char *)at;
	to = found ? malloc(strlen(name) + 16) : strdup(name);
	if (!to || !found)
		return to;
	memcpy(to, name, (size_t)(found - name));
	to[found - name] = 0;
	rest = found + strlen(id);
	end = strncmp(rest, " (", 2) ? NULL : strrchr(rest, ')');
	/* "(frame not known)" follows a name, or the id. */
	if (!strcmp(rest, " (frame not known)"))
		end = NULL;
	else if (end && strlen(end) == 1 && strstr(rest, ") (frame not known)"))
		end = strstr(rest, ") (frame not known)");
	if (!end) {
		strcat(to, "a thread");
		strcat(to, rest);
		return to;
	}
	strcat(to, "threads ");
	without_digits(rest + 2, (size_t)(end - rest) - 2, to + strlen(to));
	strcat(to, end + 1);
	return to;
}

/* "mapping at 0x7f0000 /dev/shm/pool.12" to "mapping /dev/shm/pool.*" */
static char *of_mapping(const char *name)
{
	const char *at = strstr(name, " at 0x"), *rest = at ? strchr(at + 4, ' ') : NULL;
	char *to = malloc(strlen(name) + 1);

	if (!to)
		return NULL;
	if (!at) {
		without_digits(name, strlen(name), to);
		return to;
	}
	memcpy(to, name, (size_t)(at - name));
	without_digits(rest ? rest : "", rest ? strlen(rest) : 0, to + (at - name));
	return to;
}

char *look_stable_name(const char *name, enum retained_kind kind, enum holder_kind holder,
		       pid_t tid)
{
	if ((kind == RETAINED_HOLDER || kind == RETAINED_SHARED) && tid)
		return of_thread(name, tid);
	if (kind == RETAINED_HOLDER && (holder == HOLDER_EXITED || holder == HOLDER_MAPPING ||
					holder == HOLDER_CODE || holder == HOLDER_KERNEL))
		return of_mapping(name);
	return strdup(name);
}

/* The file name, without the " (deleted)" of a file that was replaced. */
static char *file_name(const char *path)
{
	static const char deleted[] = " (deleted)";
	char *name = strdup(path_base(path));
	size_t n = name ? strlen(name) : 0;

	if (n >= sizeof(deleted) && !strcmp(name + n + 1 - sizeof(deleted), deleted))
		name[n + 1 - sizeof(deleted)] = 0;
	return name;
}

/* Is it what blocks look like, instead of their type? */
static bool is_shape(const char *name)
{
	static const enum shape shapes[] = {SHAPE_TEXT, SHAPE_POINTERS, SHAPE_DATA, SHAPE_ZEROS};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!strcmp(name, shape_name(shapes[i])))
			return true;
	}
	return false;
}

/* ------------------------------------------------------------- lines -- */

static void sum_up(struct look_line *sum, const struct retained_line *r)
{
	sum->count += r->kind == RETAINED_REST ? r->count : 1;
	sum->bytes += r->bytes;
	sum->blocks += r->blocks;
}

/* Lists the names of the roots. */
static int name_roots(struct look_line *to, const struct retained_line *r)
{
	char text[RETAINED_ROOTS * 256 + 32];
	size_t n = 0;

	if (r->roots < 2 || !r->root[0])
		return 0;
	for (int i = 0; i < RETAINED_ROOTS && r->root[i] && n < sizeof(text); i++)
		n +=
		    (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? ", " : "", r->root[i]);
	if (r->roots > RETAINED_ROOTS && n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, " ...");
	to->reached = strdup(text);
	return to->reached ? 0 : -ENOMEM;
}

static int name_line(struct look_line *to, const struct retained_line *r)
{
	to->holder = r->holder;
	to->line = r->line;
	to->name = r->name ? look_stable_name(r->name, r->kind, r->holder, r->tid) : NULL;
	to->source = r->source ? file_name(r->source) : NULL;
	to->typed = r->kind == RETAINED_BLOCKS && r->name && !is_shape(r->name);
	/* Blocks without a type have a file only by what they happen to point to. */
	if (r->module && (r->kind != RETAINED_BLOCKS || to->typed)) {
		to->module = file_name(r->module);
		if (!to->module)
			return -ENOMEM;
	}
	if ((r->name && !to->name) || (r->source && !to->source))
		return -ENOMEM;
	return name_roots(to, r);
}

/* Copies the lines below @r.  Recursion is as deep as the report. */
static int copy_below(struct look_line *to, const struct retained_line *r, uint64_t least)
{
	struct look_line **end = &to->child, *rest = look_line_new(RETAINED_REST);
	int ret = rest ? 0 : -ENOMEM;

	for (const struct retained_line *c = r->child; c && !ret; c = c->next) {
		struct look_line *l;

		if (c->kind == RETAINED_REST || c->bytes < least) {
			sum_up(rest, c);
			continue;
		}
		l = look_line_new(c->kind);
		if (!l) {
			ret = -ENOMEM;
			break;
		}
		*end = l;
		end = &l->next;
		l->size = c->kind == RETAINED_BLOCKS ? c->size : 0;
		l->count = c->count;
		l->own = c->own;
		l->bytes = c->bytes;
		l->blocks = c->blocks;
		ret = name_line(l, c);
		if (!ret)
			ret = copy_below(l, c, least);
	}
	if (rest && rest->count)
		*end = rest;
	else
		free(rest);
	return ret;
}

/* ------------------------------------------------------------- build ids -- */

/* Return: the build id of the file that is mapped, or NULL. */
static char *build_id_of(struct image *img, const char *path)
{
	const struct image_map *map = NULL;
	char text[2 * 32 + 1];
	uint8_t id[32];
	int fd = -1, n = 0;
	Elf *elf;

	vec_for_each (&img->maps, m)
		map = !map && !strcmp(m->path, path) ? m : map;
	if (map)
		fd = image_open_file(img, map);
	if (fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		n = elf_build_id(elf, id);
	elf_end(elf);
	close(fd);
	return n > 0 ? strdup(hex_text(id, (size_t)n, text)) : NULL;
}

/* Notes the modules of variables without a symbol: their names differ in each build. */
static int note_modules(struct look *l, struct image *img, const struct retained *r)
{
	for (const struct retained_line *c = r->all->child; c; c = c->next) {
		struct look_module m = {0};
		bool known = false;

		if (c->kind != RETAINED_HOLDER || c->holder != HOLDER_PLACE || !c->module ||
		    l->modules.n >= LOOK_MODULES)
			continue;
		m.name = file_name(c->module);
		if (!m.name)
			return -ENOMEM;
		vec_for_each (&l->modules, it)
			known |= !strcmp(it->name, m.name);
		if (known) {
			free(m.name);
			continue;
		}
		m.build_id = build_id_of(img, c->module);
		if (vec_push(&l->modules, m)) {
			free(m.name);
			free(m.build_id);
			return -ENOMEM;
		}
	}
	return 0;
}

/* ------------------------------------------------------------- the process -- */

static char *boot_id(void)
{
	char text[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
		fclose(f);
	}
	text[strcspn(text, "\n")] = 0;
	return text[0] ? strdup(text) : NULL;
}

/* Return: a number that tells programs apart which one process executed: where the kernel put them. */
static uint64_t address_space(const struct image *img, const char *exe)
{
	uint64_t place[3] = {0};

	vec_for_each (&img->maps, m) {
		if (!place[0] && !strcmp(m->path, exe))
			place[0] = m->start;
		if (!strcmp(m->path, "[vdso]"))
			place[1] = m->start;
		if (!strcmp(m->path, "[stack]"))
			place[2] = m->end;
	}
	return fnv((const uint8_t *)place, sizeof(place)) >> 2;
}

static void describe_process(struct look *l, const struct image *img, const char *exe)
{
	const long ticks = sysconf(_SC_CLK_TCK);
	uint64_t began, now = clock_read_ns(CLOCK_BOOTTIME);

	l->pid = img->pid;
	l->boot = boot_id();
	l->space = address_space(img, exe);
	l->started = proc_start_time(img->pid);
	l->clock_ns = clock_read_ns(CLOCK_REALTIME);
	began = ticks > 0 ? (uint64_t)((double)l->started / (double)ticks * 1e9) : 0;
	l->age_ns = l->started && began && now > began ? now - began : 0;
}

/* ------------------------------------------------------------- types -- */

static int copy_types(struct look *l, const struct heap_types *h)
{
	int ret = 0;

	for (size_t i = 0; i < h->list.n && i < LOOK_TYPES && !ret; i++) {
		const struct heap_type *t = &h->list.at[i];
		struct look_type to = {.name = strdup(t->type),
				       .module = t->owner ? file_name(t->owner) : NULL,
				       .size = t->size,
				       .count = t->count,
				       .bytes = t->bytes};

		if (!to.name || (t->owner && !to.module) || vec_push(&l->types, to)) {
			free(to.name);
			free(to.module);
			ret = -ENOMEM;
		}
	}
	return ret;
}

static int copy_containers(struct look *l, const struct heap_types *h)
{
	int ret = 0;

	for (size_t i = 0; i < h->containers.n && i < LOOK_TYPES && !ret; i++) {
		const struct heap_container *c = &h->containers.at[i];
		struct look_type to = {
		    .name = strdup(c->type), .count = c->sum.elements, .bytes = c->sum.bytes};

		if (!to.name || vec_push(&l->containers, to)) {
			free(to.name);
			ret = -ENOMEM;
		}
	}
	return ret;
}

static int take_lines(struct look *l, struct image *img, const struct census *c, struct mp_err *err)
{
	struct heap_types types = {0};
	const struct retained_options o = {
	    .depth = LOOK_DEPTH, .count = LOOK_COUNT, .types = &types};
	struct retained r = {0};
	int ret = retained_take(&r, img, c, &o, err);

	if (!ret) {
		l->live_blocks = r.live_blocks;
		l->live_bytes = r.live_bytes;
		l->unreached_blocks = r.unreached_blocks;
		l->unreached_bytes = r.unreached_bytes;
		l->all = look_line_new(RETAINED_ALL);
		ret = l->all ? copy_below(l->all, r.all, r.live_bytes / SMALLEST) : -ENOMEM;
		if (!ret) {
			l->all->bytes = r.all->bytes;
			l->all->blocks = r.all->blocks;
			ret = note_modules(l, img, &r);
		}
		if (!ret)
			ret = copy_types(l, &types);
		if (!ret)
			ret = copy_containers(l, &types);
		if (!ret)
			look_set_builds(l);
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for a look");
	}
	heap_types_free(&types);
	retained_free(&r);
	return ret;
}

int look_take(struct look *l, struct image *img, const struct census *c, const char *exe,
	      struct mp_err *err)
{
	int ret;

	memset(l, 0, sizeof(*l));
	l->program = file_name(exe);
	l->version = strdup(MEMPROF_VERSION);
	l->exact = c->exact;
	l->build_id = build_id_of(img, exe);
	ret = take_lines(l, img, c, err);
	if (ret)
		return ret;
	if (img->pid)
		describe_process(l, img, exe);
	if (!l->program || !l->version)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory for a look");
	return 0;
}

static void free_types(look_types *types)
{
	vec_for_each (types, t) {
		free(t->name);
		free(t->module);
	}
	vec_free(types);
}

void look_free(struct look *l)
{
	vec_for_each (&l->modules, m) {
		free(m->name);
		free(m->build_id);
	}
	vec_free(&l->modules);
	free_types(&l->types);
	free_types(&l->containers);
	look_line_free(l->all);
	free(l->program);
	free(l->build_id);
	free(l->name);
	free(l->mode);
	free(l->version);
	free(l->boot);
	memset(l, 0, sizeof(*l));
}
