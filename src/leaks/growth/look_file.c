/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/look_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yajl/yajl_tree.h>
#include "lib/json_gen.h"

#define VERSION	    1
#define MAX_NUMBER  (1ll << 62)
#define MAX_TEXT    4096 /* bytes of a name */
#define MAX_NESTING (2 * (LOOK_DEPTH + 4))

/* ------------------------------------------------------------- write -- */

struct output {
	FILE *file;
	size_t n;
};

static void print(void *ctx, const char *text, size_t n)
{
	struct output *o = ctx;

	fwrite(text, 1, n, o->file);
	o->n += n;
}

/* A name that is too long for the reader is cut. */
static void write_text(yajl_gen g, const char *key, const char *v)
{
	char *copy = v ? strndup(v, MAX_TEXT) : NULL;

	json_text(g, key, copy);
	free(copy);
}

/* Recursion is as deep as the look. */
static void write_line(yajl_gen g, const struct look_line *l)
{
	yajl_gen_map_open(g);
	write_text(g, "kind", retained_kind_name(l->kind, l->holder));
	write_text(g, "name", l->name);
	write_text(g, "module", l->module);
	write_text(g, "source", l->source);
	json_number(g, "line", l->line);
	write_text(g, "reached_from", l->reached);
	json_boolean(g, "typed", l->typed);
	json_number(g, "size", l->size);
	json_number(g, "count", l->count);
	json_number(g, "own_bytes", l->own);
	json_number(g, "retained_bytes", l->bytes);
	json_number(g, "retained_blocks", l->blocks);
	json_name(g, "children");
	yajl_gen_array_open(g);
	for (const struct look_line *c = l->child; c; c = c->next)
		write_line(g, c);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

static void write_types(yajl_gen g, const char *key, const look_types *types)
{
	json_name(g, key);
	yajl_gen_array_open(g);
	vec_for_each (types, t) {
		yajl_gen_map_open(g);
		write_text(g, "name", t->name);
		write_text(g, "module", t->module);
		json_number(g, "size", t->size);
		json_number(g, "count", t->count);
		json_number(g, "bytes", t->bytes);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_lists(yajl_gen g, const struct look *l)
{
	json_name(g, "modules");
	yajl_gen_array_open(g);
	vec_for_each (&l->modules, m) {
		yajl_gen_map_open(g);
		write_text(g, "name", m->name);
		write_text(g, "build_id", m->build_id);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	write_types(g, "types", &l->types);
	write_types(g, "containers", &l->containers);
}

int look_write(const struct look *l, FILE *out)
{
	struct output output = {out, 1};
	yajl_gen g = yajl_gen_alloc(NULL);

	if (!g)
		return -ENOMEM;
	yajl_gen_config(g, yajl_gen_print_callback, print, &output);
	yajl_gen_map_open(g);
	json_number(g, "memprof_heap_look", VERSION);
	write_text(g, "memprof_version", l->version);
	write_text(g, "program", l->program);
	write_text(g, "build_id", l->build_id);
	write_text(g, "name", l->name);
	write_text(g, "mode", l->mode);
	write_text(g, "boot_id", l->boot);
	json_number(g, "pid", (uint64_t)l->pid);
	json_known(g, "start_ticks", l->started);
	json_known(g, "address_space", l->space);
	json_known(g, "age_ns", l->age_ns);
	json_known(g, "monotonic_ns", l->taken_ns);
	json_known(g, "unix_ns", l->clock_ns);
	json_known(g, "pause_ns", l->pause_ns);
	json_boolean(g, "exact", l->exact);
	json_amount(g, "live", l->live_blocks, l->live_bytes);
	json_amount(g, "unreachable", l->unreached_blocks, l->unreached_bytes);
	write_lists(g, l);
	json_name(g, "retained");
	write_line(g, l->all);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	fputc('\n', out);
	if (output.n > LOOK_FILE_MAX)
		return -EFBIG;
	return ferror(out) ? -EIO : 0;
}

/* ------------------------------------------------------------- read -- */

/* The functions below return what they can, and note the first thing that is wrong. */
struct reader {
	const char *wrong; /* NULL: nothing yet */
	bool no_memory;
};

static void wrong(struct reader *r, const char *what)
{
	if (!r->wrong)
		r->wrong = what;
}

/* yajl_tree_free() recurses as deep as the text is nested.  Return: whether that is not too deep. */
static bool nests_little(const char *text)
{
	unsigned int depth = 0;
	bool quoted = false;

	for (const char *s = text; *s; s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted && (*s == '{' || *s == '[') && ++depth > MAX_NESTING)
			return false;
		else if (!quoted && (*s == '}' || *s == ']') && depth)
			depth--;
	}
	return true;
}

static yajl_val field(struct reader *r, yajl_val of, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val v = yajl_tree_get(of, path, yajl_t_any);

	if (!v)
		wrong(r, key);
	return v;
}

static uint64_t read_number(struct reader *r, yajl_val of, const char *key, bool can_be_null)
{
	yajl_val v = field(r, of, key);

	if (v && can_be_null && YAJL_IS_NULL(v))
		return 0;
	if (!v || !YAJL_IS_INTEGER(v) || YAJL_GET_INTEGER(v) < 0 ||
	    YAJL_GET_INTEGER(v) > MAX_NUMBER) {
		wrong(r, key);
		return 0;
	}
	return (uint64_t)YAJL_GET_INTEGER(v);
}

static bool read_boolean(struct reader *r, yajl_val of, const char *key)
{
	yajl_val v = field(r, of, key);

	if (v && !YAJL_IS_TRUE(v) && !YAJL_IS_FALSE(v))
		wrong(r, key);
	return v && YAJL_IS_TRUE(v);
}

/* Return: a copy to be freed; NULL for null. */
static char *read_text(struct reader *r, yajl_val of, const char *key, bool can_be_null)
{
	yajl_val v = field(r, of, key);
	const char *text = v ? YAJL_GET_STRING(v) : NULL;
	char *copy;

	if (v && can_be_null && YAJL_IS_NULL(v))
		return NULL;
	if (!text || strlen(text) > MAX_TEXT) {
		wrong(r, key);
		return NULL;
	}
	copy = strdup(text);
	r->no_memory |= !copy;
	return copy;
}

static void read_amount(struct reader *r, yajl_val of, const char *key, uint64_t *count,
			uint64_t *bytes)
{
	yajl_val v = field(r, of, key);

	if (!v || !YAJL_IS_OBJECT(v)) {
		wrong(r, key);
		return;
	}
	*count = read_number(r, v, "count", false);
	*bytes = read_number(r, v, "bytes", false);
}

/* Return: the list of objects, with at most @max of them; NULL if it is wrong. */
static yajl_val read_list(struct reader *r, yajl_val of, const char *key, size_t max)
{
	yajl_val v = field(r, of, key);

	if (!v || !YAJL_IS_ARRAY(v) || v->u.array.len > max) {
		wrong(r, key);
		return NULL;
	}
	for (size_t i = 0; i < v->u.array.len; i++) {
		if (YAJL_IS_OBJECT(v->u.array.values[i]))
			continue;
		wrong(r, key);
		return NULL;
	}
	return v;
}

static void read_kind(struct reader *r, yajl_val of, struct look_line *l)
{
	char *kind = read_text(r, of, "kind", false);
	bool found = false;

	if (!kind)
		return;
	for (int k = RETAINED_ALL; k <= RETAINED_REST && !found; k++) {
		/* A holder has the name of its own kind. */
		found = k != RETAINED_HOLDER &&
			!strcmp(kind, retained_kind_name((enum retained_kind)k, HOLDER_MODULE));
		l->kind = found ? (enum retained_kind)k : RETAINED_HOLDER;
	}
	for (int k = 0; k <= HOLDER_KERNEL && !found; k++) {
		found = !strcmp(kind, holder_kind_name((enum holder_kind)k));
		l->holder = (enum holder_kind)k;
	}
	if (!found)
		wrong(r, "kind");
	free(kind);
}

/* Recursion is as deep as the text, which was checked. */
static struct look_line *read_line(struct reader *r, yajl_val v)
{
	struct look_line *l = look_line_new(RETAINED_HOLDER), **end = l ? &l->child : NULL;
	uint64_t bytes = 0, blocks = 0;
	yajl_val list;

	if (!l) {
		r->no_memory = true;
		return NULL;
	}
	read_kind(r, v, l);
	l->name = read_text(r, v, "name", true);
	l->module = read_text(r, v, "module", true);
	l->source = read_text(r, v, "source", true);
	l->line = (uint32_t)read_number(r, v, "line", false);
	l->reached = read_text(r, v, "reached_from", true);
	l->typed = read_boolean(r, v, "typed");
	l->size = read_number(r, v, "size", false);
	l->count = read_number(r, v, "count", false);
	l->own = read_number(r, v, "own_bytes", false);
	l->bytes = read_number(r, v, "retained_bytes", false);
	l->blocks = read_number(r, v, "retained_blocks", false);
	/* Only the two have no name. */
	if (!l->name && l->kind != RETAINED_ALL && l->kind != RETAINED_REST)
		wrong(r, "name");
	list = read_list(r, v, "children", LOOK_COUNT + 1);
	for (size_t i = 0; list && i < list->u.array.len && !r->wrong && !r->no_memory; i++) {
		*end = read_line(r, list->u.array.values[i]);
		if (!*end)
			return l;
		bytes += (*end)->bytes;
		blocks += (*end)->blocks;
		end = &(*end)->next;
	}
	if (l->kind == RETAINED_BLOCKS) {
		bytes += l->own;
		blocks += l->count;
	}
	/* With numbers below 2^62 and a few children this cannot overflow unnoticed. */
	if (l->kind != RETAINED_REST && (bytes != l->bytes || blocks != l->blocks))
		wrong(r, "retained_bytes");
	return l;
}

static void read_types(struct reader *r, yajl_val v, const char *key, look_types *to)
{
	yajl_val types = read_list(r, v, key, LOOK_TYPES);

	for (size_t i = 0; types && i < types->u.array.len && !r->wrong; i++) {
		yajl_val it = types->u.array.values[i];
		struct look_type t = {
		    read_text(r, it, "name", false), read_text(r, it, "module", true),
		    read_number(r, it, "size", false), read_number(r, it, "count", false),
		    read_number(r, it, "bytes", false)};

		if (!t.name || vec_push(to, t)) {
			r->no_memory |= t.name != NULL;
			free(t.name);
			free(t.module);
			break;
		}
	}
}

static void read_lists(struct reader *r, yajl_val v, struct look *l)
{
	yajl_val modules = read_list(r, v, "modules", LOOK_MODULES);

	for (size_t i = 0; modules && i < modules->u.array.len && !r->wrong; i++) {
		yajl_val it = modules->u.array.values[i];
		struct look_module m = {read_text(r, it, "name", false),
					read_text(r, it, "build_id", true)};

		if (!m.name || vec_push(&l->modules, m)) {
			r->no_memory |= m.name != NULL;
			free(m.name);
			free(m.build_id);
			break;
		}
	}
	read_types(r, v, "types", &l->types);
	read_types(r, v, "containers", &l->containers);
}

static void read_head(struct reader *r, yajl_val v, struct look *l)
{
	l->version = read_text(r, v, "memprof_version", false);
	l->program = read_text(r, v, "program", false);
	l->build_id = read_text(r, v, "build_id", true);
	l->name = read_text(r, v, "name", false);
	l->mode = read_text(r, v, "mode", false);
	l->boot = read_text(r, v, "boot_id", true);
	l->pid = (pid_t)(read_number(r, v, "pid", false) & 0x7fffffff);
	l->started = read_number(r, v, "start_ticks", true);
	l->space = read_number(r, v, "address_space", true);
	l->age_ns = read_number(r, v, "age_ns", true);
	l->taken_ns = read_number(r, v, "monotonic_ns", true);
	l->clock_ns = read_number(r, v, "unix_ns", true);
	l->pause_ns = read_number(r, v, "pause_ns", true);
	l->exact = read_boolean(r, v, "exact");
	read_amount(r, v, "live", &l->live_blocks, &l->live_bytes);
	read_amount(r, v, "unreachable", &l->unreached_blocks, &l->unreached_bytes);
}

static int read_tree(struct look *l, yajl_val v, const char *path, struct mp_err *err)
{
	struct reader r = {0};
	yajl_val all;

	read_head(&r, v, l);
	read_lists(&r, v, l);
	all = field(&r, v, "retained");
	if (all && YAJL_IS_OBJECT(all) && !r.wrong)
		l->all = read_line(&r, all);
	if (!r.wrong && !r.no_memory &&
	    (!l->all || l->all->kind != RETAINED_ALL ||
	     l->all->bytes + l->unreached_bytes != l->live_bytes ||
	     l->all->blocks + l->unreached_blocks != l->live_blocks))
		wrong(&r, "retained");
	if (r.no_memory)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory to read %s", path);
	if (r.wrong)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s is damaged: \"%s\" is missing, or contradicts the rest", path,
			       r.wrong);
	look_set_builds(l);
	return 0;
}

int look_parse(struct look *l, const char *text, const char *path, struct mp_err *err)
{
	static const char *const version_path[] = {"memprof_heap_look", NULL};
	char why[200] = "";
	yajl_val tree, version;
	int ret;

	memset(l, 0, sizeof(*l));
	tree = nests_little(text) ? yajl_tree_parse(text, why, sizeof(why)) : NULL;
	version = tree ? yajl_tree_get(tree, (const char **)version_path, yajl_t_number) : NULL;
	if (!version && !strstr(text, "\"memprof_heap_look\""))
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "%s is not a look that memprof heap --save wrote", path);
	else if (!version)
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "%s is damaged or incomplete: it is no JSON", path);
	else if (!YAJL_IS_INTEGER(version) || YAJL_GET_INTEGER(version) != VERSION)
		ret =
		    mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			    "%s was saved by another version of memprof, in another format", path);
	else
		ret = read_tree(l, tree, path, err);
	yajl_tree_free(tree);
	return ret;
}

int look_read(struct look *l, const char *path, struct mp_err *err)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	struct stat st;
	size_t n = 0;
	int ret = f ? 0 : -errno;

	memset(l, 0, sizeof(*l));
	if (!ret && fstat(fileno(f), &st))
		ret = -errno;
	if (!ret && S_ISDIR(st.st_mode))
		ret = -EISDIR;
	if (!ret) {
		/* A pipe has no size, so the length that is read counts. */
		uint64_t room = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : LOOK_FILE_MAX;

		room = room < LOOK_FILE_MAX ? room : LOOK_FILE_MAX;
		text = malloc((size_t)room + 2);
		ret = text ? 0 : -ENOMEM;
		n = text ? fread(text, 1, (size_t)room + 1, f) : 0;
		if (text && ferror(f))
			ret = -EIO;
		if (text && n > LOOK_FILE_MAX)
			ret = -EFBIG;
	}
	if (f)
		fclose(f);
	if (ret) {
		free(text);
		return mp_fail(err, MP_EXIT_USAGE, ret, "cannot read %s: %s", path, strerror(-ret));
	}
	text[n] = 0;
	ret = memchr(text, 0, n) ? mp_fail(err, MP_EXIT_USAGE, -EINVAL,
					   "%s is not a look that memprof heap --save wrote", path)
				 : look_parse(l, text, path, err);
	free(text);
	return ret;
}
