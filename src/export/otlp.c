/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Readers of protobuf accept the items of a table one by one, so each is written when it is first used.  The dictionary
 * and the profiles are complete in memory before they are written, because their length comes first. */
#include "export/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "export/otlp.pb-c.h"
#include "formats/session.h"
#include "lib/hex.h"
#include "lib/intern.h"
#include "lib/utf8.h"
#include "model/model.h"

#define MAX_DEPTH (SS_MAX_FRAMES + 1)
#define ID_BYTES  16

/* Where packed messages are appended. */
struct sink {
	ProtobufCBuffer base; /* must be first: protobuf-c passes it to the callback */
	FILE *out;
	char *bytes;
	size_t n;
};

struct otlp {
	struct model *m;
	const struct profile_window *w;
	const struct otlp_resource *r;
	struct sink dictionary;
	/* Of each table; entry 0 is that without values. */
	struct intern *strings, *functions, *locations, *stacks, *attributes;
	uint32_t *mapping; /* [index in facts.modules]: index in the table; 0: not in it yet */
	uint32_t mappings;
	int32_t native; /* attribute of a location */
	bool failed;
};

static void append_bytes(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
	fwrite(data, 1, n, ((struct sink *)base)->out);
}

static bool sink_open(struct sink *s)
{
	*s = (struct sink){.base = {append_bytes}};
	s->out = open_memstream(&s->bytes, &s->n);
	return s->out;
}

/* Completes bytes and n.  Return: false when out of memory. */
static bool sink_close(struct sink *s)
{
	bool ok = s->out && !ferror(s->out);

	if (s->out && fclose(s->out))
		ok = false;
	s->out = NULL;
	return ok;
}

static void pack_part(struct otlp *o, const Otlp__ProfilesDictionary *part)
{
	otlp__profiles_dictionary__pack_to_buffer(part, &o->dictionary.base);
}

/* ------------------------------------------------------------------ tables -- */

/* Return: index in the table of strings. */
static int32_t string(struct otlp *o, const char *s)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	bool fresh;
	uint32_t id = intern_text(o->strings, s ? s : "", &fresh);
	char *copy = NULL;

	if (id && fresh) {
		copy = strdup(s ? s : "");
		if (copy) {
			utf8_clean(copy);
			part.n_string_table = 1;
			part.string_table = &copy;
			pack_part(o, &part);
		}
		o->failed |= !copy;
		free(copy);
	}
	o->failed |= !id;
	return id ? (int32_t)id - 1 : 0;
}

static void fill_value(Otlp__AnyValue *v, const char *text, int64_t number)
{
	if (text) {
		v->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		v->string_value = (char *)text;
	} else {
		v->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		v->int_value = number;
	}
}

/* Keys and texts are short: names of memprof, and hexadecimal digits.  @text: if NULL the value is @number */
static int32_t attribute(struct otlp *o, const char *key, const char *text, uint64_t number)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__KeyValueAndUnit kv = OTLP__KEY_VALUE_AND_UNIT__INIT, *list = &kv;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	char pair[256];
	bool fresh;
	uint32_t id;

	snprintf(pair, sizeof(pair), "%s=%s %" PRIu64, key, text ? text : "", number);
	id = intern_text(o->attributes, pair, &fresh);
	if (id && fresh) {
		kv.key_strindex = string(o, key);
		fill_value(&value, text, (int64_t)number);
		kv.value = &value;
		part.n_attribute_table = 1;
		part.attribute_table = &list;
		pack_part(o, &part);
	}
	o->failed |= !id;
	return (int32_t)id;
}

static int32_t function(struct otlp *o, const struct frame *f)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Function fn = OTLP__FUNCTION__INIT, *list = &fn;
	bool fresh;
	uint32_t id;

	fn.name_strindex = string(o, f->function);
	fn.system_name_strindex = string(o, f->raw_function ? f->raw_function : f->function);
	fn.filename_strindex = string(o, f->source);
	id = intern_pair(o->functions,
			 (uint64_t)fn.name_strindex << 32 | (uint32_t)fn.system_name_strindex,
			 (uint64_t)fn.filename_strindex, &fresh);
	if (id && fresh) {
		part.n_function_table = 1;
		part.function_table = &list;
		pack_part(o, &part);
	}
	o->failed |= !id;
	return (int32_t)id;
}

static int32_t mapping(struct otlp *o, const struct mp_module *mod)
{
	const size_t index = (size_t)(mod - o->m->facts.modules.at);
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Mapping map = OTLP__MAPPING__INIT, *list = &map;
	char hex[2 * sizeof(mod->build_id) + 1];
	int32_t attributes[2];
	const char *hash;

	if (o->mapping[index])
		return (int32_t)o->mapping[index];
	hash = o->r->file_hash ? o->r->file_hash(o->r->ctx, index) : NULL;
	if (mod->build_id_len)
		attributes[map.n_attribute_indices++] =
		    attribute(o, "process.executable.build_id.gnu",
			      hex_text(mod->build_id, mod->build_id_len, hex), 0);
	if (hash)
		attributes[map.n_attribute_indices++] =
		    attribute(o, "process.executable.build_id.htlhash", hash, 0);
	map.attribute_indices = attributes;
	map.memory_start = mod->start;
	map.memory_limit = mod->end;
	map.file_offset = mod->file_offset;
	map.filename_strindex = string(o, mod->path);
	part.n_mapping_table = 1;
	part.mapping_table = &list;
	pack_part(o, &part);
	o->mapping[index] = ++o->mappings;
	return (int32_t)o->mappings;
}

static void put_location(struct otlp *o, const struct frame *f, uint32_t n, bool symbols)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Location loc = OTLP__LOCATION__INIT, *list = &loc;
	Otlp__Line line[MAX_INLINED], *lines[MAX_INLINED];
	const struct mp_module *mod = f->address ? model_module(o->m, f->address) : NULL;

	for (uint32_t i = 0; i < n && symbols; i++) {
		otlp__line__init(&line[i]);
		line[i].function_index = function(o, &f[i]);
		line[i].line = f[i].line;
		line[i].column = f[i].column;
		lines[loc.n_lines++] = &line[i];
	}
	loc.lines = lines;
	loc.address = f->address;
	if (mod) {
		loc.mapping_index = mapping(o, mod);
		loc.n_attribute_indices = 1;
		loc.attribute_indices = &o->native;
	}
	part.n_location_table = 1;
	part.location_table = &list;
	pack_part(o, &part);
}

static int32_t location(struct otlp *o, uint64_t pc)
{
	struct frame f[MAX_INLINED] = {{.address = pc}};
	bool fresh;
	uint32_t id = intern_pair(o->locations, pc, 0, &fresh), n = 1;

	if (id && fresh) {
		if (o->w->symbols)
			n = model_frames(o->m, pc, f, MAX_INLINED);
		put_location(o, f, n, o->w->symbols);
	}
	o->failed |= !id;
	return (int32_t)id;
}

/* Why a stack does not begin with the thread's first function. */
static int32_t marker(struct otlp *o, const char *text)
{
	struct frame f = {.function = text};
	bool fresh;
	uint32_t id = intern_pair(o->locations, (uint64_t)string(o, text), 1, &fresh);

	if (id && fresh)
		put_location(o, &f, 1, true);
	o->failed |= !id;
	return (int32_t)id;
}

static int32_t stack(struct otlp *o, uint32_t stack)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Stack st = OTLP__STACK__INIT, *list = &st;
	const struct model_stack *s = &o->m->stacks.at[stack];
	int32_t at[MAX_DEPTH];
	bool fresh;
	uint32_t id = intern_pair(o->stacks, stack, 0, &fresh);

	o->failed |= !id;
	if (!id || !fresh)
		return (int32_t)id;
	for (uint32_t i = 0; i < s->n && i < SS_MAX_FRAMES; i++)
		at[st.n_location_indices++] = location(o, o->m->stacks.pc.at[s->first + i]);
	if (!s->n)
		at[st.n_location_indices++] = marker(o, "(no stack)");
	else if (!(s->flags & SS_STACK_COMPLETE))
		at[st.n_location_indices++] = marker(o, "(incomplete)");
	st.location_indices = at;
	part.n_stack_table = 1;
	part.stack_table = &list;
	pack_part(o, &part);
	return (int32_t)id;
}

/* Entry 0 of each table. */
static void put_empty(struct otlp *o)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Mapping m = OTLP__MAPPING__INIT, *maps = &m;
	Otlp__Location l = OTLP__LOCATION__INIT, *locations = &l;
	Otlp__Function f = OTLP__FUNCTION__INIT, *functions = &f;
	Otlp__Link k = OTLP__LINK__INIT, *links = &k;
	Otlp__Stack s = OTLP__STACK__INIT, *stacks = &s;
	Otlp__KeyValueAndUnit a = OTLP__KEY_VALUE_AND_UNIT__INIT, *attributes = &a;

	part.n_mapping_table = part.n_location_table = part.n_function_table = part.n_link_table =
	    part.n_stack_table = part.n_attribute_table = 1;
	part.mapping_table = &maps;
	part.location_table = &locations;
	part.function_table = &functions;
	part.link_table = &links;
	part.stack_table = &stacks;
	part.attribute_table = &attributes;
	pack_part(o, &part);
	(void)string(o, "");
}

/* ---------------------------------------------------------------- profiles -- */

enum what { ALLOC_SPACE, ALLOC_OBJECTS, INUSE_SPACE, INUSE_OBJECTS, PROFILES };

static uint64_t value_of(const struct group *g, enum what what)
{
	switch (what) {
	case ALLOC_SPACE:
		return g->allocated_bytes;
	case ALLOC_OBJECTS:
		return g->allocations;
	case INUSE_SPACE:
		return g->live_bytes;
	default:
		return g->live_blocks;
	}
}

static void put_samples(struct otlp *o, enum what what, struct sink *to)
{
	for (uint32_t id = 0; id < o->m->stacks.n && !o->failed; id++) {
		Otlp__Profile part = OTLP__PROFILE__INIT;
		Otlp__Sample sample = OTLP__SAMPLE__INIT, *list = &sample;
		int64_t value = (int64_t)value_of(&o->w->group[id], what);

		if (!value)
			continue;
		sample.stack_index = stack(o, id);
		sample.n_values = 1;
		sample.values = &value;
		part.n_samples = 1;
		part.samples = &list;
		otlp__profile__pack_to_buffer(&part, &to->base);
	}
}

static void put_profile(struct otlp *o, enum what what, struct sink *to)
{
	static const char *const name[] = {"alloc_space", "alloc_objects", "inuse_space",
					   "inuse_objects"};
	Otlp__Profile head = OTLP__PROFILE__INIT;
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT, period = OTLP__VALUE_TYPE__INIT;
	const bool live = what >= INUSE_SPACE;
	struct window_note note[WINDOW_NOTES];
	int32_t attributes[WINDOW_NOTES];
	uint8_t id[ID_BYTES];

	o->failed |= !sink_open(to);
	if (o->failed)
		return;
	type.type_strindex = string(o, name[what]);
	type.unit_strindex = string(o, what % 2 ? "count" : "bytes");
	period.type_strindex = string(o, "space");
	period.unit_strindex = string(o, "bytes");
	head.sample_type = &type;
	head.time_unix_nano = o->w->start_unix_ns;
	head.duration_nano = o->w->duration_ns;
	head.period_type = &period;
	head.period = o->m->info.sample_interval ? (int64_t)o->m->info.sample_interval : 1;
	if (getrandom(id, sizeof(id), 0) == sizeof(id)) {
		head.profile_id.data = id;
		head.profile_id.len = sizeof(id);
	}
	head.n_attribute_indices = window_notes(o->w, !live, live, note);
	for (size_t i = 0; i < head.n_attribute_indices; i++)
		attributes[i] = attribute(o, note[i].name, NULL, note[i].value);
	head.attribute_indices = attributes;
	otlp__profile__pack_to_buffer(&head, &to->base);
	put_samples(o, what, to);
	o->failed |= !sink_close(to);
}

/* ----------------------------------------------------------------- request -- */

static void put_request(struct otlp *o, struct sink *profiles, FILE *out)
{
	Otlp__ExportProfilesServiceRequest request = OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	Otlp__ResourceProfiles of_resource = OTLP__RESOURCE_PROFILES__INIT, *rs = &of_resource;
	Otlp__ScopeProfiles of_scope = OTLP__SCOPE_PROFILES__INIT, *ss = &of_scope;
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	struct sink whole = {.base = {append_bytes}, .out = out};
	Otlp__KeyValue *kv = calloc(o->r->n + 1, sizeof(*kv));
	Otlp__KeyValue **kvs = calloc(o->r->n + 1, sizeof(*kvs));
	Otlp__AnyValue *value = calloc(o->r->n + 1, sizeof(*value));
	ProtobufCBinaryData data[PROFILES];

	o->failed |= !kv || !kvs || !value;
	for (size_t i = 0; i < o->r->n && !o->failed; i++) {
		const struct otlp_attribute *a = &o->r->attribute[i];

		otlp__key_value__init(&kv[i]);
		otlp__any_value__init(&value[i]);
		fill_value(&value[i], a->text, a->number);
		kv[i].key = (char *)a->key;
		kv[i].value = &value[i];
		kvs[i] = &kv[i];
	}
	for (int i = 0; i < PROFILES; i++) {
		if (profiles[i].n)
			data[of_scope.n_profiles++] =
			    (ProtobufCBinaryData){profiles[i].n, (uint8_t *)profiles[i].bytes};
	}
	of_scope.profiles = data;
	scope.name = (char *)"memprof";
	scope.version = (char *)o->m->info.memprof_version;
	of_scope.scope = &scope;
	resource.n_attributes = o->r->n;
	resource.attributes = kvs;
	of_resource.resource = &resource;
	of_resource.n_scope_profiles = 1;
	of_resource.scope_profiles = &ss;
	request.n_resource_profiles = 1;
	request.resource_profiles = &rs;
	request.dictionary = (ProtobufCBinaryData){o->dictionary.n, (uint8_t *)o->dictionary.bytes};
	if (!o->failed)
		otlp__export_profiles_service_request__pack_to_buffer(&request, &whole.base);
	free(kv);
	free(kvs);
	free(value);
}

static bool make_tables(struct otlp *o)
{
	o->strings = intern_new();
	o->functions = intern_new();
	o->locations = intern_new();
	o->stacks = intern_new();
	o->attributes = intern_new();
	o->mapping = calloc(o->m->facts.modules.n + 1, sizeof(*o->mapping));
	return sink_open(&o->dictionary) && o->strings && o->functions && o->locations &&
	       o->stacks && o->attributes && o->mapping;
}

int otlp_write(struct model *m, const struct profile_window *w, const struct otlp_resource *r,
	       FILE *out)
{
	struct otlp o = {.m = m, .w = w, .r = r};
	struct sink profiles[PROFILES] = {0};

	o.failed = !make_tables(&o);
	if (!o.failed) {
		put_empty(&o);
		o.native = attribute(&o, "profile.frame.type", "native", 0);
	}
	for (int what = 0; what < PROFILES && !o.failed; what++) {
		if (what < INUSE_SPACE ? w->allocated : w->live)
			put_profile(&o, what, &profiles[what]);
	}
	o.failed |= !sink_close(&o.dictionary);
	if (!o.failed)
		put_request(&o, profiles, out);
	for (int what = 0; what < PROFILES; what++) {
		(void)sink_close(&profiles[what]);
		free(profiles[what].bytes);
	}
	free(o.dictionary.bytes);
	intern_free(o.strings);
	intern_free(o.functions);
	intern_free(o.locations);
	intern_free(o.stacks);
	intern_free(o.attributes);
	free(o.mapping);
	return o.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}

int64_t otlp_rejected(const uint8_t *bytes, size_t n, char *message, size_t size)
{
	Otlp__ExportProfilesServiceResponse *r =
	    otlp__export_profiles_service_response__unpack(NULL, n, bytes);
	const Otlp__ExportProfilesPartialSuccess *part = r ? r->partial_success : NULL;
	int64_t rejected = r ? 0 : -EBADMSG;

	if (part) {
		rejected = part->rejected_profiles;
		snprintf(message, size, "%s", part->error_message);
	}
	if (r)
		otlp__export_profiles_service_response__free_unpacked(r, NULL);
	return rejected;
}
