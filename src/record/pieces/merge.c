/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "record/pieces/merge_index.h"
#include "record/pieces/merge_output.h"

/* The pieces of one process, read one after the other. */
struct stream {
	uint32_t number; /* number of the process */
	const struct merge_process *process;
	struct mpf_reader *reader; /* of piece @piece; NULL: at the end */
	uint32_t piece;
	struct mpf_item item; /* the next item, with the input file's ids and times */
	uint64_t at_ns;	      /* its time in the new file; never decreases */
	uint64_t shift_ns;    /* time 0 of the piece, in the new file */
	VEC(uint32_t) stack;  /* [id in the piece]: id in the new file */
	VEC(uint16_t) hook;
	uint32_t tid; /* thread of the last event */
	struct mp_losses losses, piece_losses;
};

struct merge {
	const struct merge_parts *parts;
	struct merge_output out;
	struct stream *stream;
	struct stream **heap; /* streams that have an item, the earliest on top */
	bool leveled;	      /* the new file gets what was live over time (record/levels.h) */
	bool indexed;	      /* the new file gets an index, with the symbols after it */
	uint64_t carried; /* events left out, since the previous piece already has these blocks */
	uint32_t n;
	struct mp_err *err;
};

static int out_of_memory(struct merge *m)
{
	return mp_fail(m->err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* ------------------------------------------------------------------ reading -- */

static const struct merge_part *part_of(const struct merge *m, const struct stream *s)
{
	return &m->parts->part.at[s->process->first + s->piece];
}

static int open_piece(struct merge *m, struct stream *s)
{
	const struct merge_part *first = &m->parts->part.at[s->process->first];
	const struct merge_part *part = part_of(m, s);
	struct mp_info info;

	s->shift_ns = s->process->shift_ns + part->info.piece_ns - first->info.piece_ns;
	s->hook.n = s->stack.n = 0;
	memset(&s->piece_losses, 0, sizeof(s->piece_losses));
	return mpf_open(part->path, &s->reader, &info, m->err);
}

static int close_piece(struct merge *m, struct stream *s)
{
	uint64_t shift = s->shift_ns - s->process->shift_ns;

	if (s->piece)
		mp_losses_continue(&s->losses, &s->piece_losses, shift);
	else
		s->losses = s->piece_losses;
	mpf_reader_free(s->reader);
	s->reader = NULL;
	if (++s->piece < s->process->n)
		return open_piece(m, s);
	mp_losses_add(&m->out.losses, &s->losses, s->process->shift_ns);
	m->out.ended.at[s->number] = true;
	return 0;
}

static uint64_t due(const struct stream *s)
{
	uint64_t at = s->item.kind == MPF_EVENT	      ? s->item.event.time_ns
		      : s->item.kind == MPF_CULLED    ? s->item.culled.last_ns
		      : s->item.kind == MPF_SAMPLE    ? s->item.sample.time_ns
		      : s->item.kind == MPF_MAP_USAGE ? s->item.map_usage.time_ns
		      : s->item.kind == MPF_MARK      ? s->item.mark.time_ns
						      : 0;

	return at + s->shift_ns > s->at_ns ? at + s->shift_ns : s->at_ns;
}

/* Reads the next item.  Return: 1 with s->item filled, 0 at the end of the last piece, or a
 * negative errno. */
static int next(struct merge *m, struct stream *s)
{
	while (s->reader) {
		int ret = mpf_next(s->reader, &s->item, m->err);

		if (ret > 0)
			s->at_ns = due(s);
		if (ret)
			return ret;
		ret = close_piece(m, s);
		if (ret)
			return ret;
	}
	return 0;
}

/* ------------------------------------------------------------------ writing -- */

static int note_stack(struct merge *m, struct stream *s)
{
	uint32_t id;
	int ret = merge_output_stack(&m->out, &s->item, &id, m->err);

	while (!ret && s->stack.n <= s->item.stack.id) {
		if (s->item.stack.id > 1u << 28 || vec_push(&s->stack, 0))
			ret = out_of_memory(m);
	}
	if (!ret)
		s->stack.at[s->item.stack.id] = id;
	return ret;
}

static int note_hook(struct merge *m, struct stream *s)
{
	uint16_t id;
	int ret = merge_output_hook(&m->out, &s->item.hook, &id, m->err);

	if (!ret && vec_push(&s->hook, id))
		ret = out_of_memory(m);
	return ret;
}

static uint32_t stack_in_file(const struct stream *s, uint32_t id)
{
	return id < s->stack.n ? s->stack.at[id] : 0;
}

static uint16_t hook_in_file(const struct stream *s, uint16_t id)
{
	return id < s->hook.n ? s->hook.at[id] : UINT16_MAX;
}

static uint64_t address_in_file(const struct stream *s, uint64_t address)
{
	return s->number ? (address & ((1ull << MP_PROCESS_SHIFT) - 1)) | (uint64_t)s->number
									      << MP_PROCESS_SHIFT
			 : address;
}

static bool has_old_address(const struct mp_event *ev)
{
	return ev->kind == EV_REALLOC_END || ev->kind == EV_REMAP_END || ev->kind == EV_MAP;
}

static int put_event(struct merge *m, struct stream *s)
{
	struct mp_event ev = s->item.event;

	/* Blocks that were live at the end of the previous piece are already in the file. */
	if (s->piece && ev.flags & EV_F_CARRIED &&
	    (ev.kind == EV_ALLOC || ev.kind == EV_REALLOC_BEGIN)) {
		m->carried++;
		return 0;
	}
	if (ev.tid != s->tid && merge_output_thread(&m->out, ev.tid, s->number, m->err))
		return -EINVAL;
	s->tid = ev.tid;
	ev.time_ns += s->shift_ns;
	ev.stack = stack_in_file(s, ev.stack);
	ev.hook = hook_in_file(s, ev.hook);
	if (ev.addr) /* 0: a realloc that failed or freed */
		ev.addr = address_in_file(s, ev.addr);
	if (has_old_address(&ev))
		ev.old_addr = address_in_file(s, ev.old_addr);
	return merge_output_wrote(mpf_put_event(m->out.w, &ev), m->err);
}

static int put_culled(struct merge *m, struct stream *s)
{
	struct mp_culled c = s->item.culled;

	c.first_ns += s->shift_ns;
	c.last_ns += s->shift_ns;
	c.stack = stack_in_file(s, c.stack);
	c.hook = hook_in_file(s, c.hook);
	c.free_hook = hook_in_file(s, c.free_hook);
	c.process = (uint16_t)s->number;
	return merge_output_wrote(mpf_put_culled(m->out.w, &c), m->err);
}

/* Sections of several processes overlap; their peaks cannot be added. */
static int put_section(struct merge *m, struct stream *s)
{
	struct mp_section section = s->item.section;

	section.end_ns += s->shift_ns;
	return m->leveled ? merge_output_wrote(mpf_put_section(m->out.w, &section), m->err) : 0;
}

/* Return: whether the peak of the process is in the current piece. */
static bool has_peak(const struct merge *m, const struct stream *s)
{
	const struct merge_part *part = &m->parts->part.at[s->process->first];
	uint32_t peak = 0;

	for (uint32_t i = 1; i < s->process->n; i++) {
		if (part[i].finish.peak_live_bytes > part[peak].finish.peak_live_bytes)
			peak = i;
	}
	return s->piece == peak;
}

static int put_stack_peak(struct merge *m, struct stream *s)
{
	struct mp_stack_peak peak = s->item.stack_peak;

	peak.stack = stack_in_file(s, peak.stack);
	peak.most_ns += s->shift_ns;
	if (!has_peak(m, s))
		peak.peak_bytes = peak.peak_blocks = 0;
	return m->leveled ? merge_output_wrote(mpf_put_stack_peak(m->out.w, &peak), m->err) : 0;
}

static int put_usage(struct merge *m, struct stream *s)
{
	struct mp_map_usage u = s->item.map_usage;

	u.time_ns += s->shift_ns;
	u.start = address_in_file(s, u.start);
	u.end = u.start + (s->item.map_usage.end - s->item.map_usage.start);
	return merge_output_wrote(mpf_put_map_usage(m->out.w, &u), m->err);
}

static int put_sample(struct merge *m, struct stream *s)
{
	struct mp_sample sample = s->item.sample;

	sample.time_ns += s->shift_ns;
	return merge_output_memory(&m->out, &sample, s->number, m->err);
}

static int put_module(struct merge *m, struct stream *s)
{
	struct mp_module module = s->item.module;

	module.time_ns += module.time_ns ? s->shift_ns : 0;
	return merge_output_module(&m->out, &module, s->number, m->err);
}

static int put_item(struct merge *m, struct stream *s)
{
	const struct mpf_item *it = &s->item;

	switch (it->kind) {
	case MPF_HOOK:
		return note_hook(m, s);
	case MPF_STACK:
		return note_stack(m, s);
	case MPF_MODULE:
		return put_module(m, s);
	case MPF_EVENT:
		return put_event(m, s);
	case MPF_CULLED:
		return put_culled(m, s);
	case MPF_SECTION:
		return put_section(m, s);
	case MPF_STACK_PEAK:
		return put_stack_peak(m, s);
	case MPF_SAMPLE:
		return put_sample(m, s);
	case MPF_MAP_USAGE:
		return put_usage(m, s);
	case MPF_SYMBOLS:
		return m->indexed ? 0 : merge_output_symbols(&m->out, it, m->err);
	case MPF_LOSSES:
		s->piece_losses = it->losses;
		return 0;
	case MPF_THREAD:
		return merge_output_wrote(mpf_put_thread(m->out.w, it->thread.tid, it->thread.name),
					  m->err);
	case MPF_MARK:
		return merge_output_wrote(
		    mpf_put_mark(m->out.w, it->mark.time_ns + s->shift_ns, it->mark.name), m->err);
	default:
		return 0; /* merge_parts_look() has read the finish item */
	}
}

/* ------------------------------------------------------------------ by time -- */

static bool is_before(const struct stream *a, const struct stream *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void sift_down(struct merge *m, uint32_t i)
{
	for (;;) {
		uint32_t least = i;

		for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < m->n; k++) {
			if (is_before(m->heap[k], m->heap[least]))
				least = k;
		}
		if (least == i)
			return;
		struct stream *s = m->heap[i];

		m->heap[i] = m->heap[least];
		m->heap[least] = s;
		i = least;
	}
}

static int start_streams(struct merge *m)
{
	for (uint32_t i = 0; i < m->parts->process.n; i++) {
		struct stream *s = &m->stream[i];
		int ret;

		s->number = i;
		s->process = &m->parts->process.at[i];
		ret = open_piece(m, s);
		/* Items before its first event get the time of its start. */
		s->at_ns = s->shift_ns;
		if (!ret)
			ret = next(m, s);
		if (ret < 0)
			return ret;
		if (ret)
			m->heap[m->n++] = s;
	}
	for (uint32_t i = m->n; i > 0; i--)
		sift_down(m, i - 1);
	return 0;
}

static int merge_streams(struct merge *m)
{
	int ret = start_streams(m);

	while (!ret && m->n) {
		ret = put_item(m, m->heap[0]);
		if (!ret)
			ret = next(m, m->heap[0]);
		if (ret < 0)
			return ret;
		if (!ret)
			m->heap[0] = m->heap[--m->n];
		ret = 0;
		sift_down(m, 0);
	}
	return ret;
}

static int merge_into(struct merge *m, const char *to, bool *truncated)
{
	bool whole = !*truncated;
	int ret = merge_output_open(&m->out, to, m->parts, m->err);

	m->indexed = merge_index_possible(m->parts);
	m->leveled = m->parts->process.n == 1;
	vec_for_each (&m->parts->part, part)
		m->leveled &= part->info.cull_ns != 0;
	if (!ret)
		ret = merge_streams(m);
	if (!ret && m->indexed)
		ret = merge_index_put(&m->out, m->carried, m->err);
	if (!ret)
		ret = merge_output_close(&m->out, &whole, m->err);
	if (ret && m->out.w)
		unlink(to);
	*truncated = !whole;
	return ret;
}

static bool is_input(char *const *paths, uint32_t n, const char *to)
{
	for (uint32_t i = 0; i < n; i++) {
		if (mpf_same_file(paths[i], to))
			return true;
	}
	return false;
}

int recording_merge(char *const *paths, uint32_t n, const char *to, struct merge_result *result,
		    struct mp_err *err)
{
	struct merge_parts parts;
	struct merge m = {.parts = &parts, .err = err};
	int ret = merge_parts_look(paths, n, &parts, err);

	if (!ret && is_input(paths, n, to))
		ret = mp_fail(err, MP_EXIT_OUTPUT, -EEXIST, "%s would be written over itself", to);
	*result = (struct merge_result){(uint32_t)parts.process.n, (uint32_t)parts.part.n, false};
	vec_for_each (&parts.part, part)
		result->truncated |= part->truncated;
	if (!ret) {
		m.stream = calloc(parts.process.n, sizeof(*m.stream));
		m.heap = calloc(parts.process.n, sizeof(struct stream *));
		ret =
		    m.stream && m.heap ? merge_into(&m, to, &result->truncated) : out_of_memory(&m);
		merge_output_free(&m.out);
	}
	for (uint32_t i = 0; m.stream && i < parts.process.n; i++) {
		mpf_reader_free(m.stream[i].reader);
		vec_free(&m.stream[i].stack);
		vec_free(&m.stream[i].hook);
	}
	free(m.stream);
	free(m.heap);
	merge_parts_free(&parts);
	return ret;
}
