/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/merge_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAIL_CHUNKS 2u
/* Start times of processes have the resolution of a clock tick */
#define SAME_START_NS 1000000000u

static int out_of_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

static int refuse_parts(struct mp_err *err, const struct merge_part *a, const struct merge_part *b,
			const char *why)
{
	return mp_fail(err, MP_EXIT_RECORDING, -EINVAL, "%s and %s cannot be merged: %s", a->path,
		       b->path, why);
}

/* ------------------------------------------------------------------ one file -- */

/* Reads the items from where @r is, for what only the last ones say. */
static int look_at_end(struct merge_part *p, struct mpf_reader *r, struct mp_err *err)
{
	struct mpf_item it;
	int ret;

	while ((ret = mpf_next(r, &it, err)) > 0) {
		if (it.kind == MPF_EVENT && it.event.time_ns > p->end_ns)
			p->end_ns = it.event.time_ns;
		if (it.kind != MPF_FINISH)
			continue;
		p->has_finish = true;
		p->finish = it.finish;
	}
	if (p->has_finish && p->finish.end_ns > p->end_ns)
		p->end_ns = p->finish.end_ns;
	p->truncated = mpf_truncated(r) != NULL;
	return ret;
}

static int read_part(struct merge_part *p, const char *path, struct mp_err *err)
{
	struct mpf_reader *r;
	struct mp_info info;
	int ret = mpf_open(path, &r, &info, err);

	if (ret)
		return ret;
	mpf_skip_to_tail(r, TAIL_CHUNKS);
	ret = look_at_end(p, r, err);
	/* In files of memprof before 26 November 2026 an event can refer to a block of an earlier chunk
	 * (formats/FORMAT.md), so that the last chunks alone cannot be decoded. */
	if (ret) {
		mpf_reader_free(r);
		ret = mpf_open(path, &r, &info, err);
		if (ret)
			return ret;
		ret = look_at_end(p, r, err);
	}
	p->path = path;
	p->info = info;
	p->info.executable = strdup(info.executable);
	p->info.cmdline = strdup(info.cmdline);
	p->info.memprof_version = strdup(info.memprof_version);
	mpf_reader_free(r);
	if (!ret && (!p->info.executable || !p->info.cmdline || !p->info.memprof_version))
		ret = out_of_memory(err);
	if (!ret && p->info.processes)
		ret = mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			      "%s is a merged recording of several processes: merge all the "
			      "original recordings in one command",
			      path);
	return ret;
}

/* ------------------------------------------------------------------ together -- */

static int by_piece(const void *a, const void *b)
{
	const struct merge_part *x = a, *y = b;
	int order = memcmp(x->info.id, y->info.id, sizeof(x->info.id));

	return order ? order : x->info.piece < y->info.piece ? -1 : x->info.piece > y->info.piece;
}

static bool is_next_piece(const struct merge_part *a, const struct merge_part *b)
{
	return !memcmp(a->info.id, b->info.id, sizeof(a->info.id));
}

static int check_pieces(const struct merge_part *a, const struct merge_part *b, struct mp_err *err)
{
	if (a->info.piece == b->info.piece)
		return refuse_parts(err, a, b, "they are the same recording");
	if (a->info.piece + 1 != b->info.piece)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "between %s and %s a piece of the recording is missing: number %u",
			       a->path, b->path, a->info.piece + 1);
	if (a->truncated)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s was cut off: later pieces cannot be merged with it", a->path);
	return 0;
}

static int check_kinds(const struct merge_part *a, const struct merge_part *b, struct mp_err *err)
{
	const struct mp_info *x = &a->info, *y = &b->info;

	if (x->what != y->what)
		return refuse_parts(err, a, b, "one is of page faults, the other of allocations");
	if (x->machine != y->machine)
		return refuse_parts(err, a, b, "they are of different architectures");
	if (x->sample_interval != y->sample_interval)
		return refuse_parts(err, a, b, "they are sampled differently");
	if (x->user_only != y->user_only || x->page_size != y->page_size)
		return refuse_parts(err, a, b, "they do not count the same page faults");
	return 0;
}

static const struct merge_part *first_of(const struct merge_parts *p,
					 const struct merge_process *process)
{
	return &p->part.at[process->first];
}

static const struct merge_part *last_of(const struct merge_parts *p,
					const struct merge_process *process)
{
	return &p->part.at[process->first + process->n - 1];
}

/* Refuses two recordings of the same process: the second has no record of what became of the
 * first's blocks.  They are accepted if the first ended by exec, which removes all blocks. */
static int check_process(const struct merge_parts *p, const struct merge_process *x,
			 const struct merge_process *y, struct mp_err *err)
{
	const struct merge_part *a = last_of(p, x), *b = first_of(p, y);
	uint64_t s = a->info.process_start_unix_ns, t = b->info.process_start_unix_ns;

	if (a->info.pid != b->info.pid || (s > t ? s - t : t - s) >= SAME_START_NS ||
	    (a->has_finish && a->finish.reason == MP_END_EXECED))
		return 0;
	return refuse_parts(
	    err, a, b,
	    "both are of one process at different times, and the events between them are missing");
}

static int by_start(const void *a, const void *b)
{
	const struct merge_process *x = a, *y = b;

	if (x->shift_ns != y->shift_ns)
		return x->shift_ns < y->shift_ns ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int make_processes(struct merge_parts *p, struct mp_err *err)
{
	for (uint32_t i = 0; i < p->part.n; i++) {
		struct merge_part *part = &p->part.at[i];
		struct merge_process fresh = {i, 1, part->info.start_unix_ns};
		int ret = check_kinds(&p->part.at[0], part, err);

		if (ret)
			return ret;
		if (i && is_next_piece(part - 1, part)) {
			ret = check_pieces(part - 1, part, err);
			p->process.at[p->process.n - 1].n++;
		} else if (vec_push(&p->process, fresh)) {
			ret = out_of_memory(err);
		}
		if (ret)
			return ret;
	}
	if (p->process.n > MP_MAX_PROCESSES)
		return mp_fail(err, MP_EXIT_RECORDING, -E2BIG, "more than %u processes",
			       MP_MAX_PROCESSES);
	return 0;
}

static int order_processes(struct merge_parts *p, struct mp_err *err)
{
	uint64_t zero;
	int ret = 0;

	vec_sort(&p->process, by_start);
	zero = p->process.at[0].shift_ns;
	vec_for_each (&p->process, process)
		process->shift_ns -= zero;
	for (size_t i = 0; i < p->process.n; i++) {
		for (size_t k = i + 1; !ret && k < p->process.n; k++)
			ret = check_process(p, &p->process.at[i], &p->process.at[k], err);
	}
	return ret;
}

int merge_parts_look(char *const *paths, uint32_t n, struct merge_parts *p, struct mp_err *err)
{
	int ret = 0;

	memset(p, 0, sizeof(*p));
	for (uint32_t i = 0; !ret && i < n; i++) {
		if (vec_push(&p->part, (struct merge_part){0}))
			return out_of_memory(err);
		ret = read_part(&p->part.at[i], paths[i], err);
	}
	if (ret)
		return ret;
	vec_sort(&p->part, by_piece);
	ret = make_processes(p, err);
	return ret ? ret : order_processes(p, err);
}

void merge_parts_free(struct merge_parts *p)
{
	vec_for_each (&p->part, part) {
		free((char *)part->info.executable);
		free((char *)part->info.cmdline);
		free((char *)part->info.memprof_version);
	}
	vec_free(&p->part);
	vec_free(&p->process);
}
