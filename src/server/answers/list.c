/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/json.h"
#include "model/model.h"
#include "model/sums/quick.h"
#include "server/answers/ending.h"
#include "server/answers/list_cache.h"
#include "server/recordings.h"
#include "server/running.h"

/* The index has only the stacks of live blocks: adds the others. */
static int add_stacks(struct model *m, struct mp_err *err)
{
	struct mpf_reader *r;
	struct mp_info info;
	struct mpf_item it;
	int ret = mpf_open(m->source.path, &r, &info, err);

	if (ret)
		return ret;
	while ((ret = mpf_next(r, &it, err)) > 0) {
		ret = it.kind == MPF_STACK ? facts_item(m, &it) : 0;
		if (ret) {
			mp_fail(err, MP_EXIT_RECORDING, ret, "cannot load the recording: %s",
				strerror(-ret));
			break;
		}
	}
	mpf_reader_free(r);
	return ret;
}

/* Fills @m with what the list needs.  Return: 0, or a negative errno with @err. */
static int load_facts(const char *path, struct model *m, struct mp_err *err)
{
	int ret = quick_load(path, m, err);

	if (!ret && m->info.sample_interval) {
		/* What the recorder of a sample estimated differs a little from what reports do. */
		model_free(m);
		ret = -ENOENT;
	}
	if (ret == -ENOENT)
		return model_load(path, NULL, m, err);
	if (!ret)
		ret = add_stacks(m, err);
	if (ret)
		model_free(m);
	return ret;
}

/* Return: the number of frames of a stack, with inlined ones. */
static uint32_t depth_of(struct model *m, const struct model_stack *s)
{
	struct frame f[MAX_INLINED];
	uint32_t depth = 0;

	for (uint32_t i = 0; i < s->n; i++)
		depth += model_frames(m, m->stacks.pc.at[s->first + i], f, MAX_INLINED);
	return depth;
}

static void write_stacks(yajl_gen g, struct model *m)
{
	uint64_t n = 0, deepest = 0;

	for (uint32_t id = 1; id < m->stacks.n; id++) {
		uint32_t depth = depth_of(m, &m->stacks.at[id]);

		n += depth > 0;
		if (depth > deepest)
			deepest = depth;
	}
	json_number(g, "unique_backtrace_count", n);
	json_number(g, "maximum_backtrace_depth", deepest);
}

static void write_recording(yajl_gen g, struct model *m)
{
	yajl_gen_map_open(g);
	json_info(g, m);
	json_number(g, "final_allocated", m->sums.total.live_bytes);
	json_number(g, "final_allocated_count", m->sums.total.live_blocks);
	write_stacks(g, m);
	json_number(g, "lost_events", mp_losses_events(&m->facts.losses));
	yajl_gen_map_close(g);
}

static void write_failure(yajl_gen g, const struct recording *r, const struct mp_err *err)
{
	yajl_gen_map_open(g);
	json_text(g, "id", r->id);
	json_text(g, "error", err->what);
	yajl_gen_map_close(g);
}

/* Describes a recording, or why it cannot be read.  Return: 0 with *@text to be freed, or -ENOMEM. */
static int describe(const struct recording *r, char **text, bool *readable)
{
	struct mp_err err = {0};
	struct model m;
	size_t size;
	FILE *out;
	yajl_gen g;

	*text = NULL;
	*readable = false;
	out = open_memstream(text, &size);
	g = out ? json_begin(out, false) : NULL;
	if (g && !load_facts(r->path, &m, &err)) {
		*readable = true;
		write_recording(g, &m);
		model_free(&m);
	} else if (g) {
		write_failure(g, r, &err);
	}
	if (g)
		yajl_gen_free(g);
	if (out && !fclose(out) && g)
		return 0;
	free(*text);
	return -ENOMEM;
}

/* Writes an object, with what changes although the file does not. */
static void write_object(struct answer *a, const struct recording *r, const char *text)
{
	struct mp_err none;
	pid_t pid;

	fprintf(a->out, "{\"in_progress\":%s,%s", running_find(r, &pid, &none) ? "false" : "true",
		text + 1);
}

static int write_one(struct answer *a, const struct recording *r, struct mp_err *err)
{
	struct stat now;
	bool known = !stat(r->path, &now), readable;
	const char *kept = known ? list_cache_get(r->path, &now) : NULL;
	char *text;

	if (kept) {
		write_object(a, r, kept);
		return 0;
	}
	if (describe(r, &text, &readable))
		return answer_no_memory(err);
	write_object(a, r, text);
	if (known && readable)
		list_cache_put(r->path, &now, text);
	else
		free(text);
	return 0;
}

int answer_list(struct answer *a, struct mp_err *err)
{
	const char *separator = "";
	int ret = 0;

	/* The objects are texts that yajl wrote before. */
	putc('[', a->out);
	vec_for_each (&a->recordings->at, r) {
		fputs(separator, a->out);
		separator = ",";
		ret = write_one(a, r, err);
		if (ret)
			break;
	}
	putc(']', a->out);
	return ret;
}
