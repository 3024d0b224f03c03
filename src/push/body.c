/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/body.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/base64.h"
#include "export/otlp.h"
#include "export/output.h"
#include "export/pprof.h"
#include "lib/json_gen.h"
#include "push/file_hash.h"
#include "push/http.h"
#include "push/identity.h"
#include "push/push.pb-c.h"

#define BOUNDARY "memprof-5b1f9c04a7d2e863"
#define NS	 1000000000u

struct bytes {
	char *at;
	size_t n;
};

/* -------------------------------------------------------------------- parts -- */

/* What a profile is of: allocations have a duration, and what is live is as of its end. */
struct profiled {
	struct model *m;
	const struct profile_window *w;
	const struct identity *id;
	struct file_hashes *files;
};

/* Packs by gzip what @put writes. */
static int pack(const struct profiled *p, int (*put)(const struct profiled *p, FILE *out),
		struct bytes *out)
{
	FILE *text = open_memstream(&out->at, &out->n), *packed = text ? output_gzip(text) : NULL;
	int ret = packed ? put(p, packed) : -ENOMEM;

	if (packed && fclose(packed) && !ret)
		ret = -ENOMEM;
	if (text && fclose(text) && !ret)
		ret = -ENOMEM;
	return ret;
}

static int write_pprof(const struct profiled *p, FILE *out)
{
	return pprof_write_window(p->m, p->w, out);
}

static int packed_pprof(const struct profiled *p, bool allocated, bool live, struct bytes *out)
{
	struct profile_window w = *p->w;
	const struct profiled part = {p->m, &w, p->id, p->files};

	w.allocated = allocated;
	w.live = live;
	return pack(&part, write_pprof, out);
}

/* A name of a label has letters, digits and '_' only.  Return: @name. */
static char *label_name(const char *key, char *name, size_t size)
{
	snprintf(name, size, "%s%s", isdigit((unsigned char)*key) ? "_" : "", key);
	for (char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c))
			*c = '_';
	}
	return name;
}

static const char *label_value(const struct otlp_attribute *a, char *number, size_t size)
{
	if (a->text)
		return a->text;
	snprintf(number, size, "%" PRId64, a->number);
	return number;
}

/* --------------------------------------------------------------------- OTLP -- */

static int write_otlp(const struct profiled *p, FILE *out)
{
	const struct otlp_resource r = {.attribute = p->id->attributes.at,
					.n = p->id->attributes.n,
					.file_hash = file_hash,
					.ctx = p->files};

	return otlp_write(p->m, p->w, &r, out);
}

static int make_otlp(const struct profiled *p, struct body *b)
{
	struct bytes request = {0};
	int ret = pack(p, write_otlp, &request);

	b->bytes = request.at;
	b->n = request.n;
	return ret;
}

/* ---------------------------------------------------------------- Pyroscope -- */

struct labels {
	Push__LabelPair *pair, **list;
	size_t n;
	char (*name)[256], (*number)[24];
};

static void add_label(struct labels *l, const char *name, const char *value)
{
	Push__LabelPair *pair = &l->pair[l->n];

	push__label_pair__init(pair);
	pair->name = (char *)name;
	pair->value = (char *)value;
	l->list[l->n++] = pair;
}

static void free_labels(struct labels *l)
{
	free(l->pair);
	free(l->list);
	free(l->name);
	free(l->number);
}

/* As Pyroscope's own clients call the profiles of a heap; __delta__: allocations are those of the window, so the server
 * must not subtract those of the window before. */
static bool take_labels(const struct profiled *p, struct labels *l)
{
	const size_t n = p->id->attributes.n + 2;

	*l = (struct labels){.pair = calloc(n, sizeof(*l->pair)),
			     .list = calloc(n, sizeof(*l->list)),
			     .name = calloc(n, sizeof(*l->name)),
			     .number = calloc(n, sizeof(*l->number))};
	if (!l->pair || !l->list || !l->name || !l->number)
		return false;
	add_label(l, "__name__", "memory");
	add_label(l, "__delta__", "false");
	vec_for_each (&p->id->attributes, a) {
		const size_t at = l->n;

		label_name(a->key, l->name[at], sizeof(l->name[at]));
		add_label(l, l->name[at], label_value(a, l->number[at], sizeof(l->number[at])));
	}
	return true;
}

static int make_push(const struct profiled *p, struct body *b)
{
	Push__PushRequest request = PUSH__PUSH_REQUEST__INIT;
	Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT, *all = &series;
	Push__RawSample sample = PUSH__RAW_SAMPLE__INIT, *samples = &sample;
	struct bytes profile = {0};
	struct labels l;
	int ret = packed_pprof(p, true, true, &profile);

	if (!take_labels(p, &l))
		ret = -ENOMEM;
	if (!ret) {
		sample.raw_profile = (ProtobufCBinaryData){profile.n, (uint8_t *)profile.at};
		series.n_labels = l.n;
		series.labels = l.list;
		series.n_samples = 1;
		series.samples = &samples;
		request.n_series = 1;
		request.series = &all;
		b->n = push__push_request__get_packed_size(&request);
		b->bytes = malloc(b->n + 1);
		if (b->bytes)
			push__push_request__pack(&request, (uint8_t *)b->bytes);
		else
			ret = -ENOMEM;
	}
	free_labels(&l);
	free(profile.at);
	return ret;
}

static void put_escaped(FILE *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		fprintf(out, isalnum(*c) || strchr("-._~", *c) ? "%c" : "%%%02X", *c);
}

/* name=APP{label=value,...}, with the time in seconds. */
static int make_query(const struct profiled *p, char **query)
{
	const char *service = identity_text(p->id, "service.name");
	const uint64_t from = p->w->start_unix_ns / NS,
		       until = (p->w->start_unix_ns + p->w->duration_ns + NS - 1) / NS;
	size_t size;
	FILE *out = open_memstream(query, &size);
	bool first = true;

	if (!out)
		return -ENOMEM;
	fputs("?name=", out);
	put_escaped(out, service ? service : "memprof");
	put_escaped(out, "{");
	vec_for_each (&p->id->attributes, a) {
		char name[256], number[24];

		if (!strcmp(a->key, "service.name"))
			continue;
		put_escaped(out, first ? "" : ",");
		put_escaped(out, label_name(a->key, name, sizeof(name)));
		put_escaped(out, "=");
		put_escaped(out, label_value(a, number, sizeof(number)));
		first = false;
	}
	put_escaped(out, "}");
	fprintf(out, "&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof&spyName=memprof", from,
		until);
	return fclose(out) ? -ENOMEM : 0;
}

static int make_ingest(const struct profiled *p, struct body *b)
{
	/* Without it the server takes allocations for sums since the start. */
	static const char types[] =
	    "{\"alloc_objects\":{\"units\":\"objects\",\"cumulative\":false},"
	    "\"alloc_space\":{\"units\":\"bytes\",\"cumulative\":false},"
	    "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
	    "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}";
	struct bytes profile = {0};
	int ret = packed_pprof(p, true, true, &profile);
	FILE *out = ret ? NULL : open_memstream(&b->bytes, &b->n);

	if (!ret)
		ret = make_query(p, &b->query);
	if (out) {
		fprintf(out, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"profile\"; "
			     "filename=\"profile.pprof\"\r\n"
			     "Content-Type: application/octet-stream\r\n\r\n");
		fwrite(profile.at, 1, profile.n, out);
		fprintf(out,
			"\r\n--" BOUNDARY
			"\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
			"filename=\"sample_type_config.json\"\r\nContent-Type: "
			"application/json\r\n\r\n%s\r\n--" BOUNDARY "--\r\n",
			types);
	}
	if (!out || fclose(out))
		ret = ret ? ret : -ENOMEM;
	free(profile.at);
	return ret;
}

/* -------------------------------------------------------------------- Parca -- */

static int put_series(yajl_gen g, const struct profiled *p, bool allocated)
{
	struct bytes profile = {0}, text = {0};
	int ret = packed_pprof(p, allocated, !allocated, &profile);
	FILE *out = ret ? NULL : open_memstream(&text.at, &text.n);
	FILE *coded = out ? base64_stream(out) : NULL;

	if (coded)
		fwrite(profile.at, 1, profile.n, coded);
	if (!coded || fclose(coded) || fclose(out))
		ret = ret ? ret : -ENOMEM;
	yajl_gen_map_open(g);
	json_name(g, "labels");
	yajl_gen_map_open(g);
	json_name(g, "labels");
	yajl_gen_array_open(g);
	yajl_gen_map_open(g);
	json_text(g, "name", "__name__");
	json_text(g, "value", "memory");
	yajl_gen_map_close(g);
	vec_for_each (&p->id->attributes, a) {
		char name[256], number[24];

		yajl_gen_map_open(g);
		json_text(g, "name", label_name(a->key, name, sizeof(name)));
		json_text(g, "value", label_value(a, number, sizeof(number)));
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
	json_name(g, "samples");
	yajl_gen_array_open(g);
	yajl_gen_map_open(g);
	json_text(g, "rawProfile", text.at);
	yajl_gen_map_close(g);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
	free(profile.at);
	free(text.at);
	return ret;
}

/* Parca takes a profile with a duration for one of that time, and one without for a state.  Thus there are two. */
static int make_parca(const struct profiled *p, struct body *b)
{
	const struct profile_window live = {.group = p->w->group,
					    .start_unix_ns =
						p->w->start_unix_ns + p->w->duration_ns,
					    .symbols = p->w->symbols,
					    .all_lost_events = p->w->all_lost_events,
					    .lost_frees = p->w->lost_frees,
					    .thinned = p->w->thinned,
					    .live_error = p->w->live_error};
	const struct profiled state = {p->m, &live, p->id, p->files};
	FILE *out = open_memstream(&b->bytes, &b->n);
	yajl_gen g = out ? json_begin(out, false) : NULL;
	int ret = -ENOMEM;

	if (g) {
		yajl_gen_map_open(g);
		json_name(g, "series");
		yajl_gen_array_open(g);
		ret = put_series(g, p, true);
		ret = ret ? ret : put_series(g, &state, false);
		yajl_gen_array_close(g);
		json_boolean(g, "normalized", false);
		yajl_gen_map_close(g);
		yajl_gen_free(g);
	}
	if (!out || fclose(out))
		ret = ret ? ret : -ENOMEM;
	return ret;
}

/* ---------------------------------------------------------------------- all -- */

static int make_file(const struct profiled *p, struct body *b)
{
	struct bytes profile = {0};
	int ret = packed_pprof(p, true, true, &profile);

	b->bytes = profile.at;
	b->n = profile.n;
	return ret;
}

int body_make(enum destination_kind kind, struct model *m, const struct profile_window *w,
	      const struct identity *id, struct file_hashes *files, struct body *b)
{
	static int (*const make[])(const struct profiled *p, struct body *b) = {
	    [DESTINATION_OTLP] = make_otlp,	 [DESTINATION_PYROSCOPE] = make_push,
	    [DESTINATION_INGEST] = make_ingest,	 [DESTINATION_PARCA] = make_parca,
	    [DESTINATION_DIRECTORY] = make_file,
	};
	const struct profiled p = {m, w, id, files};
	int ret;

	*b = (struct body){0};
	ret = make[kind](&p, b);
	if (!ret && !b->query) {
		b->query = strdup("");
		ret = b->query ? 0 : -ENOMEM;
	}
	if (ret)
		body_free(b);
	return ret;
}

void body_free(struct body *b)
{
	free(b->query);
	free(b->bytes);
	*b = (struct body){0};
}

const char *body_type(enum destination_kind kind)
{
	switch (kind) {
	case DESTINATION_OTLP:
		return "application/x-protobuf";
	case DESTINATION_PYROSCOPE:
		return "application/proto";
	case DESTINATION_INGEST:
		return "multipart/form-data; boundary=" BOUNDARY;
	default:
		return "application/json";
	}
}

const char *body_encoding(enum destination_kind kind)
{
	return kind == DESTINATION_OTLP ? "gzip" : NULL;
}

bool body_accepted(enum destination_kind kind, const struct http_answer *a, char *why, size_t size)
{
	char message[200] = "";
	int64_t rejected = 0;

	if (kind == DESTINATION_OTLP)
		rejected = otlp_rejected((const uint8_t *)a->body, a->n, message, sizeof(message));
	/* A collector that answers with JSON took the request, too. */
	if (rejected <= 0)
		return true;
	snprintf(why, size, "the server rejected %" PRId64 " profiles: %s", rejected, message);
	return false;
}
