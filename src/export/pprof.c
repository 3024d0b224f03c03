/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Readers of protobuf merge consecutive messages, so a small message is written for each item,
 * instead of building the whole profile in memory. */
#include "export/pprof.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/profile.pb-c.h"
#include "formats/session.h"
#include "lib/hex.h"
#include "lib/intern.h"
#include "lib/utf8.h"
#include "lib/vec.h"
#include "model/model.h"
#include "unwind/symbols.h"

#define MAX_INLINED 64
#define MAX_DEPTH   (SS_MAX_FRAMES + 1)

struct sink {
	ProtobufCBuffer base; /* must be first: protobuf-c passes it to the callback */
	FILE *out;
};

struct pprof {
	struct model *m;
	struct sink sink;
	struct intern *strings, *functions, *locations;
	uint32_t *mapping; /* [index in facts.modules]: id */
	bool failed;
};

static void append(ProtobufCBuffer *base, size_t n, const uint8_t *data)
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

static void put_location(struct pprof *p, uint64_t id, const struct frame *f, uint32_t n)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Location loc = PPROF__LOCATION__INIT, *list = &loc;
	Pprof__Line line[MAX_INLINED], *lines[MAX_INLINED];
	const struct mp_module *mod = f->address ? model_module(p->m, f->address) : NULL;

	for (uint32_t i = 0; i < n; i++) {
		pprof__line__init(&line[i]);
		line[i].function_id = function(p, &f[i]);
		line[i].line = f[i].line;
		lines[i] = &line[i];
	}
	loc.id = id;
	loc.address = f->address;
	loc.mapping_id = mod ? p->mapping[mod - p->m->facts.modules.at] : 0;
	loc.n_line = n;
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
		n = model_frames(p->m, pc, f, MAX_INLINED);
		put_location(p, id, f, n);
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
		put_location(p, id, &f, 1);
	return id;
}

static void put_sample(struct pprof *p, uint32_t id)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	const struct model_stack *s = &p->m->stacks.at[id];
	const struct group *g = &p->m->sums.group[id];
	uint64_t at[MAX_DEPTH];
	int64_t value[4] = {(int64_t)g->allocations, (int64_t)g->allocated_bytes,
			    (int64_t)g->live_blocks, (int64_t)g->live_bytes};

	if (!g->allocations && !g->live_blocks)
		return;
	for (uint32_t i = 0; i < s->n && i < SS_MAX_FRAMES; i++)
		at[sample.n_location_id++] = location(p, p->m->stacks.pc.at[s->first + i]);
	if (!s->n)
		at[sample.n_location_id++] = marker(p, "(no stack)");
	else if (!(s->flags & SS_STACK_COMPLETE))
		at[sample.n_location_id++] = marker(p, "(incomplete)");
	sample.location_id = at;
	sample.n_value = 4;
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
	map.has_functions = map.has_filenames = map.has_line_numbers = map.has_inline_frames = true;
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

static void put_pattern(FILE *f, const char *name, size_t n)
{
	for (const char *s = name; s < name + n; s++)
		fprintf(f, isalnum((unsigned char)*s) || *s == '_' ? "%c" : "\\%c", *s);
}

/* A pattern by which readers hide the allocator's own frames, so that a site is where it was
 * called. */
static int64_t drop_frames(struct pprof *p)
{
	int64_t id = 0;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	if (!f) {
		p->failed = true;
		return 0;
	}
	vec_for_each (&p->m->facts.hooks, h) {
		char *nice = symbol_demangle(h->name);

		if (h != p->m->facts.hooks.at)
			putc('|', f);
		put_pattern(f, h->name, strlen(h->name));
		if (nice) { /* pprof removes the arguments from names before it compares them */
			putc('|', f);
			put_pattern(f, nice, strcspn(nice, "("));
		}
		free(nice);
	}
	if (fclose(f))
		p->failed = true;
	else
		id = string(p, text);
	free(text);
	return id;
}

static void put_head(struct pprof *p)
{
	static const char *const type[] = {"alloc_objects", "alloc_space", "inuse_objects",
					   "inuse_space"};
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType value[4], *values[4], period = PPROF__VALUE_TYPE__INIT;
	int64_t comment[2];
	char text[64];

	(void)string(p, "");
	for (int i = 0; i < 4; i++) {
		pprof__value_type__init(&value[i]);
		value[i].type = string(p, type[i]);
		value[i].unit = string(p, i % 2 ? "bytes" : "count");
		values[i] = &value[i];
	}
	period.type = string(p, "space");
	period.unit = string(p, "bytes");
	snprintf(text, sizeof(text), "memprof %s", p->m->info.memprof_version);
	comment[0] = string(p, text);
	comment[1] = string(p, p->m->info.cmdline);
	part.n_sample_type = 4;
	part.sample_type = values;
	part.time_nanos = (int64_t)p->m->info.start_unix_ns;
	part.duration_nanos = (int64_t)p->m->facts.end_ns;
	part.period_type = &period;
	part.period = p->m->info.sample_interval ? (int64_t)p->m->info.sample_interval : 1;
	part.drop_frames = drop_frames(p);
	part.n_comment = 2;
	part.comment = comment;
	part.default_sample_type = value[3].type;
	put_part(p, &part);
}

int pprof_write(struct model *m, FILE *out)
{
	struct pprof p = {.m = m, .sink = {{append}, out}};

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
