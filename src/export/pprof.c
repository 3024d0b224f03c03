/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Readers of protobuf merge consecutive messages, so a small message is written for each item,
 * instead of building the whole profile in memory. */
#include "export/pprof.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "export/profile.pb-c.h"
#include "export/tree.h"
#include "export/window.h"
#include "formats/session.h"
#include "lib/hex.h"
#include "lib/intern.h"
#include "lib/utf8.h"
#include "lib/vec.h"
#include "model/model.h"

#define MAX_DEPTH (SS_MAX_FRAMES + 1)

struct sink {
	ProtobufCBuffer base; /* must be first: protobuf-c passes it to the callback */
	FILE *out;
};

struct pprof {
	struct model *m;
	const struct profile_window *w;
	struct sink sink;
	struct intern *strings, *functions, *locations;
	uint32_t *mapping; /* [index in facts.modules]: id */
	bool failed;
};

static void append_bytes(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
	fwrite(data, 1, n, ((struct sink *)base)->out);
}

static void put_part(struct pprof *p, const Pprof__Profile *part)
{
	pprof__profile__pack_to_buffer(part, &p->sink.base);
}

/* Return: index in the string table. */
static int64_t string(struct pprof *p, const char *s)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint32_t id;
	bool fresh;
	char *copy;

	id = intern_text(p->strings, s ? s : "", &fresh);
	if (!id) {
		p->failed = true;
		return 0;
	}
	if (fresh) {
		copy = strdup(s ? s : "");
		if (!copy) {
			p->failed = true;
			return 0;
		}
		utf8_clean(copy);
		part.n_string_table = 1;
		part.string_table = &copy;
		put_part(p, &part);
		free(copy);
	}
	return id - 1;
}

static uint64_t function(struct pprof *p, const struct frame *f)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Function fn = PPROF__FUNCTION__INIT, *list = &fn;
	bool fresh;

	fn.name = string(p, f->function);
	fn.system_name = string(p, f->raw_function ? f->raw_function : f->function);
	fn.filename = string(p, f->source);
	fn.id = intern_pair(p->functions, (uint64_t)fn.name << 32 | (uint64_t)fn.system_name,
			    (uint64_t)fn.filename, &fresh);
	if (!fn.id)
		p->failed = true;
	if (fresh) {
		part.n_function = 1;
		part.function = &list;
		put_part(p, &part);
	}
	return fn.id;
}

static void put_location(struct pprof *p, uint64_t id, const struct frame *f, uint32_t n,
			 bool symbols)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Location loc = PPROF__LOCATION__INIT, *list = &loc;
	Pprof__Line line[MAX_INLINED], *lines[MAX_INLINED];
	const struct mp_module *mod = f->address ? model_module(p->m, f->address) : NULL;

	for (uint32_t i = 0; i < n && symbols; i++) {
		pprof__line__init(&line[i]);
		line[i].function_id = function(p, &f[i]);
		line[i].line = f[i].line;
		lines[loc.n_line++] = &line[i];
	}
	loc.id = id;
	loc.address = f->address;
	loc.mapping_id = mod ? p->mapping[mod - p->m->facts.modules.at] : 0;
	loc.line = lines;
	part.n_location = 1;
	part.location = &list;
	put_part(p, &part);
}

static uint64_t location(struct pprof *p, uint64_t pc)
{
	struct frame f[MAX_INLINED];
	bool fresh;
	uint64_t id = intern_pair(p->locations, pc, 0, &fresh);
	uint32_t n;

	if (!id)
		p->failed = true;
	if (fresh) {
		f[0] = (struct frame){.address = pc};
		n = p->w->symbols ? model_frames(p->m, pc, f, MAX_INLINED) : 1;
		put_location(p, id, f, n, p->w->symbols);
	}
	return id;
}

static uint64_t marker(struct pprof *p, const char *text)
{
	struct frame f = {.function = text};
	bool fresh;
	uint64_t id = intern_pair(p->locations, (uint64_t)string(p, text), 1, &fresh);

	if (!id)
		p->failed = true;
	if (fresh)
		put_location(p, id, &f, 1, true);
	return id;
}

enum type { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, TYPES };

static bool is_written(const struct pprof *p, enum type type)
{
	return type < INUSE_OBJECTS ? p->w->allocated : p->w->live;
}

static uint64_t value_of(const struct group *g, enum type type)
{
	switch (type) {
	case ALLOC_OBJECTS:
		return g->allocations;
	case ALLOC_SPACE:
		return g->allocated_bytes;
	case INUSE_OBJECTS:
		return g->live_blocks;
	default:
		return g->live_bytes;
	}
}

static void put_sample(struct pprof *p, uint32_t id)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	const struct model_stack *s = &p->m->stacks.at[id];
	const struct group *g = &p->w->group[id];
	uint64_t at[MAX_DEPTH];
	int64_t value[TYPES];
	bool any = false;

	for (int i = 0; i < TYPES; i++) {
		if (!is_written(p, i))
			continue;
		any |= value_of(g, i) != 0;
		value[sample.n_value++] = (int64_t)value_of(g, i);
	}
	if (!any)
		return;
	for (uint32_t i = 0; i < s->n && i < SS_MAX_FRAMES; i++)
		at[sample.n_location_id++] = location(p, p->m->stacks.pc.at[s->first + i]);
	if (!s->n)
		at[sample.n_location_id++] = marker(p, "(no stack)");
	else if (!(s->flags & SS_STACK_COMPLETE))
		at[sample.n_location_id++] = marker(p, "(incomplete)");
	sample.location_id = at;
	sample.value = value;
	part.n_sample = 1;
	part.sample = &list;
	put_part(p, &part);
}

static void put_mapping(struct pprof *p, size_t index, uint32_t id)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Mapping map = PPROF__MAPPING__INIT, *list = &map;
	const struct mp_module *mod = &p->m->facts.modules.at[index];
	char hex[2 * sizeof(mod->build_id) + 1];

	map.id = p->mapping[index] = id;
	map.memory_start = mod->start;
	map.memory_limit = mod->end;
	map.file_offset = mod->file_offset;
	map.filename = string(p, mod->path);
	map.build_id = string(p, hex_text(mod->build_id, mod->build_id_len, hex));
	map.has_functions = map.has_filenames = map.has_line_numbers = map.has_inline_frames =
	    p->w->symbols;
	part.n_mapping = 1;
	part.mapping = &list;
	put_part(p, &part);
}

/* Readers treat the first mapping as the program's. */
static void put_mappings(struct pprof *p)
{
	const char *exe = p->m->info.executable;
	uint32_t id = 0;

	for (int others = 0; others < 2; others++) {
		for (size_t i = 0; i < p->m->facts.modules.n; i++) {
			if (!!strcmp(p->m->facts.modules.at[i].path, exe) == others)
				put_mapping(p, i, ++id);
		}
	}
}

/* Return: length of the part of a name that pprof compares: it removes the parameters. */
static size_t name_length(const char *name)
{
	static const char *const not_parameters[] = {"operator()", "(anonymous namespace)"};
	const char *s = name;

	for (;;) {
		size_t n = 0;

		for (int i = 0; i < 2 && !n; i++) {
			if (!strncmp(s, not_parameters[i], strlen(not_parameters[i])))
				n = strlen(not_parameters[i]);
		}
		if (!n && (!*s || *s == '('))
			return (size_t)(s - name);
		s += n ? n : 1;
	}
}

static void put_pattern(FILE *f, const char *name)
{
	for (const char *s = name; *s; s++)
		fprintf(f, isalnum((unsigned char)*s) || *s == '_' || *s & 0x80 ? "%c" : "\\%c",
			*s);
}

/* Names of functions as pprof compares them, each in @list once. */
struct name_set {
	struct intern *seen;
	VEC(char *) list;
};

static void free_set(struct name_set *set)
{
	intern_free(set->seen);
	vec_for_each (&set->list, name)
		free(*name);
	vec_free(&set->list);
}

static void add_name(struct pprof *p, struct name_set *set, const char *name)
{
	char *own = strndup(name, name_length(name));
	bool fresh = false;

	if (!own || !intern_text(set->seen, own, &fresh))
		p->failed = true;
	if (fresh && !vec_push(&set->list, own))
		return;
	p->failed |= fresh;
	free(own);
}

/* Where a frame is in stacks: inside the first frame of the user's own code, or not. */
struct seen_frame {
	const char *name;
	bool inside, elsewhere;
};

struct seen_frames {
	VEC(struct seen_frame) at; /* [shown_frame.number] */
};

static int see_frame(struct seen_frames *seen, const struct shown_frame *f, bool inside)
{
	struct seen_frame none = {0}, *at;

	while (seen->at.n <= f->number) {
		if (vec_push(&seen->at, none))
			return -ENOMEM;
	}
	at = &seen->at.at[f->number];
	at->name = f->full;
	at->inside |= inside;
	at->elsewhere |= !inside;
	return 0;
}

static void see_stack(struct pprof *p, uint32_t id, struct seen_frames *seen)
{
	const struct group *g = &p->m->sums.group[id];
	struct shown_stack s;

	if (!g->allocations && !g->live_blocks)
		return;
	p->failed |= shown_every(p->m, id, &s) != 0;
	for (uint32_t i = 0; i < s.n && s.site < s.n && !p->failed; i++)
		p->failed = see_frame(seen, &s.at[i], i < s.site) != 0;
}

/* Return: a pattern of the names of @set that @with has, too; NULL: of all. */
static int64_t pattern_of(struct pprof *p, const struct name_set *set, const struct name_set *with)
{
	int64_t id = 0;
	bool any = false;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f) {
		p->failed = true;
		return 0;
	}
	vec_for_each (&set->list, name) {
		bool fresh = false;

		if (with && (!intern_text(with->seen, *name, &fresh) || fresh))
			continue;
		if (any)
			putc('|', f);
		any = true;
		put_pattern(f, *name);
	}
	if (fclose(f))
		p->failed = true;
	else
		id = string(p, text);
	free(text);
	return id;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sets the patterns by which readers hide the runtime's frames inside the user's own code, so that
 * a site is where that called them.  A function that also calls the user's code is kept: readers
 * would hide that, too. */
static void set_patterns(struct pprof *p, Pprof__Profile *part)
{
	struct name_set inside = {intern_new(), {0}}, others = {intern_new(), {0}};
	struct seen_frames seen = {0};

	p->failed |= !inside.seen || !others.seen;
	for (uint32_t id = 0; id < p->m->stacks.n && !p->failed; id++)
		see_stack(p, id, &seen);
	vec_for_each (&seen.at, f) {
		if (f->inside && !p->failed)
			add_name(p, &inside, f->name);
		if (f->elsewhere && !p->failed)
			add_name(p, &others, f->name);
	}
	if (!p->failed && inside.list.n) {
		/* Frames are numbered as they are first shown, which can be in another format. */
		vec_sort(&inside.list, by_name);
		part->drop_frames = pattern_of(p, &inside, NULL);
		part->keep_frames = pattern_of(p, &inside, &others);
	}
	vec_free(&seen.at);
	free_set(&inside);
	free_set(&others);
}

static void put_head(struct pprof *p)
{
	static const char *const type[] = {"alloc_objects", "alloc_space", "inuse_objects",
					   "inuse_space"};
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType value[TYPES], *values[TYPES], period = PPROF__VALUE_TYPE__INIT;
	struct window_note note[WINDOW_NOTES];
	const size_t notes = window_notes(p->w, p->w->allocated, p->w->live, note);
	int64_t comment[2 + WINDOW_NOTES];
	char text[80];

	(void)string(p, "");
	for (int i = 0; i < TYPES; i++) {
		if (!is_written(p, i))
			continue;
		pprof__value_type__init(&value[i]);
		value[i].type = string(p, type[i]);
		value[i].unit = string(p, i % 2 ? "bytes" : "count");
		part.default_sample_type = value[i].type;
		values[part.n_sample_type++] = &value[i];
	}
	period.type = string(p, "space");
	period.unit = string(p, "bytes");
	snprintf(text, sizeof(text), "memprof %s", p->m->info.memprof_version);
	comment[part.n_comment++] = string(p, text);
	if (p->w->comment)
		comment[part.n_comment++] = string(p, p->w->comment);
	for (size_t i = 0; i < notes; i++) {
		snprintf(text, sizeof(text), "%s=%" PRIu64, note[i].name, note[i].value);
		comment[part.n_comment++] = string(p, text);
	}
	part.sample_type = values;
	part.time_nanos = (int64_t)p->w->start_unix_ns;
	part.duration_nanos = (int64_t)p->w->duration_ns;
	part.period_type = &period;
	part.period = p->m->info.sample_interval ? (int64_t)p->m->info.sample_interval : 1;
	if (!p->m->shown.full && p->w->symbols)
		set_patterns(p, &part);
	part.comment = comment;
	put_part(p, &part);
}

int pprof_write(struct model *m, FILE *out)
{
	const struct profile_window whole = {.group = m->sums.group,
					     .start_unix_ns = m->info.start_unix_ns,
					     .duration_ns = m->facts.end_ns,
					     .allocated = true,
					     .live = true,
					     .symbols = true,
					     .comment = m->info.cmdline};

	return pprof_write_window(m, &whole, out);
}

int pprof_write_window(struct model *m, const struct profile_window *w, FILE *out)
{
	struct pprof p = {.m = m, .w = w, .sink = {{append_bytes}, out}};

	p.strings = intern_new();
	p.functions = intern_new();
	p.locations = intern_new();
	p.mapping = calloc(m->facts.modules.n + 1, sizeof(*p.mapping));
	p.failed = !p.strings || !p.functions || !p.locations || !p.mapping;
	if (!p.failed) {
		put_head(&p);
		put_mappings(&p);
	}
	for (uint32_t id = 0; id < m->stacks.n && !p.failed; id++)
		put_sample(&p, id);
	intern_free(p.strings);
	intern_free(p.functions);
	intern_free(p.locations);
	free(p.mapping);
	return p.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}

/* ------------------------------------------------------------- trees of names -- */

#define MAX_LEVELS 256

static void put_tree_head(struct pprof *p, const char *about)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType objects = PPROF__VALUE_TYPE__INIT, space = PPROF__VALUE_TYPE__INIT,
			 *values[] = {&objects, &space};
	int64_t comment;

	(void)string(p, "");
	objects.type = string(p, "inuse_objects");
	objects.unit = string(p, "count");
	space.type = string(p, "inuse_space");
	space.unit = string(p, "bytes");
	comment = string(p, about);
	part.n_sample_type = 2;
	part.sample_type = values;
	part.n_comment = 1;
	part.comment = &comment;
	part.default_sample_type = space.type;
	put_part(p, &part);
}

/* Writes a sample for each node, with what it has beyond its children.  @at: the locations of the
 * nodes above it, the innermost one first, at the end of the array. */
static void put_nodes(struct pprof *p, const struct tree_node *n, uint64_t at[MAX_LEVELS],
		      size_t depth)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	int64_t value[2] = {(int64_t)n->count, (int64_t)n->cost};

	for (const struct tree_node *c = n->child; c && !p->failed; c = c->next) {
		value[0] -= (int64_t)c->count;
		value[1] -= (int64_t)c->cost;
		if (depth == MAX_LEVELS)
			continue;
		at[MAX_LEVELS - 1 - depth] = marker(p, c->function);
		put_nodes(p, c, at, depth + 1);
	}
	if (!depth || (value[0] <= 0 && value[1] <= 0))
		return;
	sample.n_location_id = depth;
	sample.location_id = at + MAX_LEVELS - depth;
	sample.n_value = 2;
	sample.value = value;
	part.n_sample = 1;
	part.sample = &list;
	put_part(p, &part);
}

int pprof_write_tree(const struct tree_node *root, const char *comment, FILE *out)
{
	struct pprof p = {.sink = {{append_bytes}, out}};
	uint64_t at[MAX_LEVELS];

	p.strings = intern_new();
	p.functions = intern_new();
	p.locations = intern_new();
	p.failed = !p.strings || !p.functions || !p.locations;
	if (!p.failed) {
		put_tree_head(&p, comment);
		put_nodes(&p, root, at, 0);
	}
	intern_free(p.strings);
	intern_free(p.functions);
	intern_free(p.locations);
	return p.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}
