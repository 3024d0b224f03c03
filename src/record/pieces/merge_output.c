/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/merge_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formats/binaries.h"
#include "formats/session.h"
#include "lib/intern.h"

#define LOAD 60

static int out_of_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

int merge_output_wrote(int ret, struct mp_err *err)
{
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the merged recording: %s",
			     strerror(-ret))
		   : 0;
}

/* ------------------------------------------------------------------ beginning -- */

static bool several(const struct merge_output *o)
{
	return o->parts->process.n > 1;
}

static const struct merge_part *part_of(const struct merge_output *o, uint32_t process)
{
	return &o->parts->part.at[o->parts->process.at[process].first];
}

/* Return: the end of the last piece of @process, in the time of the new file. */
static uint64_t end_of(const struct merge_output *o, uint32_t process)
{
	const struct merge_process *p = &o->parts->process.at[process];
	const struct merge_part *first = &o->parts->part.at[p->first], *last = first + p->n - 1;

	return p->shift_ns + last->info.piece_ns - first->info.piece_ns + last->end_ns;
}

int merge_output_processes(struct merge_output *o, struct mp_err *err)
{
	for (uint32_t i = 0; several(o) && i < o->parts->process.n; i++) {
		const struct mp_info *info = &part_of(o, i)->info;
		struct mp_process p = {.number = i,
				       .pid = info->pid,
				       .start_ns = o->parts->process.at[i].shift_ns,
				       .end_ns = end_of(o, i),
				       .executable = info->executable,
				       .cmdline = info->cmdline};
		int ret = mpf_put_process(o->w, &p);

		if (ret)
			return merge_output_wrote(ret, err);
	}
	return 0;
}

static struct mp_info merged_info(const struct merge_output *o)
{
	struct mp_info info = part_of(o, 0)->info;

	vec_for_each (&o->parts->part, part) {
		if (info.cull_ns < part->info.cull_ns)
			info.cull_ns = part->info.cull_ns;
	}

	if (!several(o))
		return info;
	info.processes = (uint32_t)o->parts->process.n;
	info.piece = 0;
	info.piece_ns = 0;
	info.called[0] = 0;
	for (uint32_t i = 1; i < o->parts->process.n; i++) {
		for (size_t k = 0; k < sizeof(info.id); k++)
			info.id[k] ^= part_of(o, i)->info.id[k];
	}
	return info;
}

int merge_output_open(struct merge_output *o, const char *path, const struct merge_parts *parts,
		      struct mp_err *err)
{
	struct mp_info info;
	int ret;

	*o = (struct merge_output){
	    .parts = parts, .symbols = {live_new(LOAD), live_new(LOAD)}, .threads = live_new(LOAD)};
	if (stacks_init(&o->stacks) || !o->symbols[0] || !o->symbols[1] || !o->threads)
		return out_of_memory(err);
	for (size_t i = 0; i < parts->process.n; i++) {
		if (vec_push(&o->ended, false) || vec_push(&o->memory, (struct mp_sample){0}))
			return out_of_memory(err);
	}
	info = merged_info(o);
	ret = mpf_create(path, &info, &o->w, err);
	return ret ? ret : merge_output_processes(o, err);
}

/* ------------------------------------------------------------------ hooks, stacks, modules,
 * symbols -- */

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

int merge_output_hook(struct merge_output *o, const struct mp_hook_info *h, uint16_t *id,
		      struct mp_err *err)
{
	struct mp_hook_info own = {.kind = h->kind};

	for (*id = 0; *id < o->hooks.n; ++*id) {
		const struct mp_hook_info *known = &o->hooks.at[*id];

		if (known->kind == h->kind && same_text(known->name, h->name) &&
		    same_text(known->module, h->module))
			return 0;
	}
	if (*id == UINT16_MAX)
		return mp_fail(err, MP_EXIT_RECORDING, -E2BIG, "too many functions");
	own.name = strdup(h->name ? h->name : "");
	own.module = strdup(h->module ? h->module : "");
	if (!own.name || !own.module || vec_push(&o->hooks, own)) {
		free((char *)own.name);
		free((char *)own.module);
		return out_of_memory(err);
	}
	return merge_output_wrote(mpf_put_hook(o->w, &own), err);
}

int merge_output_stack(struct merge_output *o, const struct mpf_item *stack, uint32_t *id,
		       struct mp_err *err)
{
	bool fresh = false;

	*id =
	    stacks_intern(&o->stacks, stack->stack.pc, stack->stack.n, stack->stack.flags, &fresh);
	if (!*id)
		return out_of_memory(err);
	return fresh ? merge_output_wrote(mpf_put_stack(o->w, *id, stack->stack.flags,
							stack->stack.pc, stack->stack.n),
					  err)
		     : 0;
}

static bool same_code(const struct mp_module *a, const struct mp_module *b)
{
	if (a->bias != b->bias || !same_text(a->path, b->path) ||
	    a->build_id_len != b->build_id_len)
		return false;
	return !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/* Return: 1 if the file already has @m, 0 if not, or a negative errno with @err filled. */
static int has_module(const struct merge_output *o, const struct mp_module *m, uint32_t process,
		      struct mp_err *err)
{
	for (size_t i = o->modules.n; i > 0; i--) {
		const struct merge_module *k = &o->modules.at[i - 1];

		if (k->m.end <= m->start || m->end <= k->m.start)
			continue;
		if (same_code(&k->m, m)) {
			if (k->m.start <= m->start && m->end <= k->m.end)
				return 1;
			continue;
		}
		if (k->process == process)
			return 0;
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s and %s cannot be merged: at 0x%llx one has %s, the other %s",
			       part_of(o, k->process)->path, part_of(o, process)->path,
			       (unsigned long long)m->start, k->m.path, m->path ? m->path : "?");
	}
	return 0;
}

int merge_output_module(struct merge_output *o, const struct mp_module *m, uint32_t process,
			struct mp_err *err)
{
	struct merge_module own = {*m, process};
	int ret = has_module(o, m, process, err);
	char *path;

	if (ret)
		return ret < 0 ? ret : 0;
	path = strdup(m->path ? m->path : "");
	own.m.path = path;
	if (path && !vec_push(&o->modules, own))
		return merge_output_wrote(mpf_put_module(o->w, m), err);
	free(path);
	return out_of_memory(err);
}

static bool in_a_file(const struct merge_output *o, uint64_t pc)
{
	for (size_t i = o->modules.n; i > 0; i--) {
		const struct mp_module *m = &o->modules.at[i - 1].m;

		if (pc >= m->start && pc < m->end)
			return *m->path;
	}
	return false;
}

/* Return: what generated code is called that had @known as its name in the parts before and @next in
 * this one, to be freed; NULL if out of memory. */
static char *both_names(const struct merge_output *o, const char *known, const char *next)
{
	char *text;

	/* A later piece of a recording has the names of the earlier ones, too (control/jit.h). */
	if (!several(o) || strstr(next, known))
		return strdup(next);
	if (strstr(known, next))
		return strdup(known);
	return asprintf(&text, "%s | %s", known, next) < 0 ? NULL : text;
}

/* Generated code that several parts have at one address can be different code.  Readers use the last
 * symbols of an address. */
static int rename_generated(struct merge_output *o, const struct mpf_item *it,
			    struct merge_generated *known, struct mp_err *err)
{
	const struct mp_symbol *next = it->symbols.at;
	struct mp_symbol s = {0};
	char *text;

	if (it->symbols.n != 1 || !next->function ||
	    (!strcmp(next->function, known->function) && same_text(next->source, known->source)))
		return 0;
	text = both_names(o, known->function, next->function);
	if (!text)
		return out_of_memory(err);
	free(known->function);
	free(known->source);
	*known = (struct merge_generated){.function = text};
	s.function = s.raw_function = text;
	return merge_output_wrote(mpf_put_symbols(o->w, it->symbols.pc, &s, 1), err);
}

/* Keeps the name of generated code.  @b->stack: set to its number, 0 for other code. */
static int keep_generated(struct merge_output *o, const struct mpf_item *it, struct live_block *b)
{
	const struct mp_symbol *s = it->symbols.at;
	struct merge_generated *own;

	if (it->symbols.n != 1 || !s->function || in_a_file(o, b->addr))
		return 0;
	if (vec_push(&o->generated, ((struct merge_generated){0})))
		return -ENOMEM;
	own = &o->generated.at[o->generated.n - 1];
	own->function = strdup(s->function);
	own->source = s->source ? strdup(s->source) : NULL;
	if (!own->function || (s->source && !own->source))
		return -ENOMEM;
	b->stack = (uint32_t)o->generated.n;
	return 0;
}

int merge_output_symbols(struct merge_output *o, const struct mpf_item *it, struct mp_err *err)
{
	uint64_t pc = it->symbols.pc & ~SS_PC_EXACT;
	struct live *seen = o->symbols[it->symbols.pc != pc];
	struct live_block b = {.addr = pc, .size = 1}, old;

	/* The live table holds only addresses of 48 bits.  Others are rare and can be written
	 * twice. */
	if (pc && !(pc >> 48)) {
		if (live_find(seen, pc, &old))
			return old.stack
				   ? rename_generated(o, it, &o->generated.at[old.stack - 1], err)
				   : 0;
		if (keep_generated(o, it, &b) || live_put(seen, &b, &old))
			return out_of_memory(err);
	}
	return merge_output_wrote(
	    mpf_put_symbols(o->w, it->symbols.pc, it->symbols.at, it->symbols.n), err);
}

/* ------------------------------------------------------------------ processes -- */

int merge_output_thread(struct merge_output *o, uint32_t tid, uint32_t process, struct mp_err *err)
{
	struct live_block b = {.addr = (uint64_t)tid << 4, .size = 1, .stack = process}, old;

	if (!several(o) || !tid)
		return 0;
	if (live_put(o->threads, &b, &old))
		return out_of_memory(err);
	if (!old.addr || old.stack == process || o->ended.at[old.stack])
		return 0;
	return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
		       "%s and %s cannot be merged: both have a thread %u at one time, as in "
		       "different pid namespaces",
		       part_of(o, old.stack)->path, part_of(o, process)->path, tid);
}

int merge_output_memory(struct merge_output *o, const struct mp_sample *s, uint32_t process,
			struct mp_err *err)
{
	struct mp_sample sum = {.time_ns = s->time_ns};

	o->memory.at[process] = *s;
	for (size_t i = 0; i < o->memory.n; i++) {
		const struct mp_sample *m = &o->memory.at[i];

		if (o->ended.at[i])
			continue;
		sum.rss += m->rss;
		sum.anonymous += m->anonymous;
		sum.file += m->file;
		sum.swap += m->swap;
		sum.address_space += m->address_space;
		sum.session_rss += m->session_rss;
		sum.session_anonymous += m->session_anonymous;
		sum.session_address_space += m->session_address_space;
	}
	return merge_output_wrote(mpf_put_sample(o->w, &sum), err);
}

/* ------------------------------------------------------------------ end -- */

/* Adds the finish item of a part.  @peaks: include the peak.  The peak of several processes would
 * require following their blocks, so it stays 0 for them. */
static void add_finish(struct mp_finish *sum, const struct merge_part *part, uint64_t shift_ns,
		       bool peaks)
{
	const struct mp_finish *f = &part->finish;

	if (peaks && f->peak_live_bytes > sum->peak_live_bytes) {
		sum->peak_live_bytes = f->peak_live_bytes;
		sum->peak_live_blocks = f->peak_live_blocks;
		sum->peak_time_ns = f->peak_time_ns + shift_ns;
	}
	if (f->end_ns + shift_ns >= sum->end_ns) {
		sum->end_ns = f->end_ns + shift_ns;
		sum->reason = f->reason;
	}
	if (f->attach_stop_ns > sum->attach_stop_ns)
		sum->attach_stop_ns = f->attach_stop_ns;
	if (f->detach_stop_ns > sum->detach_stop_ns)
		sum->detach_stop_ns = f->detach_stop_ns;
	if (f->reason != MP_END_PIECED) {
		sum->restored &= f->restored;
		sum->sideband &= f->sideband;
	}
}

static bool sum_finishes(const struct merge_output *o, struct mp_finish *sum)
{
	bool all = true;

	*sum = (struct mp_finish){.restored = 1, .sideband = 1};
	vec_for_each (&o->parts->process, p) {
		const struct merge_part *first = &o->parts->part.at[p->first];

		for (uint32_t i = 0; i < p->n; i++) {
			add_finish(sum, &first[i],
				   p->shift_ns + first[i].info.piece_ns - first->info.piece_ns,
				   !several(o));
			all &= first[i].has_finish;
		}
	}
	if (sum->reason == MP_END_PIECED)
		sum->restored = sum->sideband = 0;
	return all;
}

static int put_binaries(struct merge_output *o, bool *whole, struct mp_err *err)
{
	struct intern *have = intern_new();
	int ret = have ? 0 : out_of_memory(err);

	vec_for_each (&o->parts->part, part) {
		bool left_out = false;

		if (!ret)
			ret = binaries_copy(part->path, o->w, have, &left_out, err);
		*whole &= !left_out;
	}
	intern_free(have);
	return ret;
}

int merge_output_close(struct merge_output *o, bool *whole, struct mp_err *err)
{
	struct mp_finish finish;
	int ret;

	mpf_put_losses(o->w, &o->losses);
	if (sum_finishes(o, &finish))
		mpf_put_finish(o->w, &finish);
	ret = put_binaries(o, whole, err);
	if (ret)
		return ret;
	ret = *whole ? mpf_close(o->w) : mpf_close_open_ended(o->w);
	o->w = NULL;
	return merge_output_wrote(ret, err);
}

void merge_output_free(struct merge_output *o)
{
	if (o->w)
		mpf_close_open_ended(o->w);
	stacks_free(&o->stacks);
	vec_for_each (&o->hooks, h) {
		free((char *)h->name);
		free((char *)h->module);
	}
	vec_for_each (&o->modules, m)
		free((char *)m->m.path);
	vec_free(&o->hooks);
	vec_free(&o->modules);
	vec_for_each (&o->generated, g) {
		free(g->function);
		free(g->source);
	}
	vec_free(&o->generated);
	live_free(o->symbols[0]);
	live_free(o->symbols[1]);
	live_free(o->threads);
	vec_free(&o->ended);
	vec_free(&o->memory);
}
