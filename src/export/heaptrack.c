/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/heaptrack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "formats/session.h"
#include "lib/intern.h"
#include "lib/printable.h"
#include "lib/vec.h"
#include "model/filter/selection.h"
#include "model/model.h"
#include "model/sums/weight.h"

#define PAGE	  4096u
#define MAX_LINES UINT32_MAX /* for one block or sum; real recordings need fewer */

struct heaptrack {
	struct model *m;
	FILE *out;
	struct intern *strings, *ips, *traces, *infos;
	uint32_t *trace; /* [stack id]; 0: not written yet */
	uint64_t ms, live;
	VEC(struct mp_culled) sums;
	size_t written; /* number of sums written */
};

/* Writes a number as heaptrack does: hexadecimal without a prefix. */
static void hex(FILE *out, uint64_t v)
{
	char buf[17], *p = buf + sizeof(buf);

	*--p = ' ';
	do
		*--p = "0123456789abcdef"[v & 15];
	while (v >>= 4);
	fwrite_unlocked(p, 1, (size_t)(buf + sizeof(buf) - p), out);
}

static void line1(FILE *out, char mode, uint64_t v)
{
	putc_unlocked(mode, out);
	putc_unlocked(' ', out);
	hex(out, v);
	putc_unlocked('\n', out);
}

/* Return: id of @s, which is written first if it is new; 0 for no string. */
static uint32_t string(struct heaptrack *h, const char *s)
{
	bool fresh;
	uint32_t id;

	if (!s || !*s)
		return 0;
	id = intern_text(h->strings, s, &fresh);
	if (fresh) {
		s = printable(s);
		fprintf(h->out, "s %zx %s\n", strlen(s), s);
	}
	return id;
}

static uint32_t named_ip(struct heaptrack *h, uint64_t mark, const char *text)
{
	bool fresh;
	uint32_t s = string(h, text), id = intern_pair(h->ips, mark, 1, &fresh);

	if (fresh)
		fprintf(h->out, "i 0 0 %x 0 0\n", s);
	return id;
}

static uint32_t ip(struct heaptrack *h, uint64_t pc)
{
	struct frame f[MAX_INLINED];
	uint32_t n, id, module, name[MAX_INLINED], file[MAX_INLINED];
	const struct mp_module *mod;
	bool fresh;

	id = intern_pair(h->ips, pc, 0, &fresh);
	if (!fresh)
		return id;
	n = model_frames(h->m, pc, f, MAX_INLINED);
	mod = model_module(h->m, f[0].address);
	module = string(h, mod ? mod->path : NULL);
	for (uint32_t i = 0; i < n; i++) {
		name[i] = string(h, f[i].function);
		file[i] = string(h, f[i].source);
	}
	fprintf(h->out, "i %llx %x", (unsigned long long)f[0].address, module);
	for (uint32_t i = 0; i < n; i++)
		fprintf(h->out, " %x %x %x", name[i], file[i], f[i].line);
	putc_unlocked('\n', h->out);
	return id;
}

static uint32_t trace(struct heaptrack *h, uint32_t ip_id, uint32_t parent)
{
	bool fresh;
	uint32_t id = intern_pair(h->traces, ip_id, parent, &fresh);

	if (fresh)
		fprintf(h->out, "t %x %x\n", ip_id, parent);
	return id;
}

static uint32_t trace_of(struct heaptrack *h, uint32_t stack)
{
	const struct model_stack *s;
	uint32_t at = 0;

	if (stack >= h->m->stacks.n)
		stack = 0;
	if (h->trace[stack])
		return h->trace[stack];
	s = &h->m->stacks.at[stack];
	if (!s->n)
		at = trace(h, named_ip(h, 1, "(no stack)"), 0);
	else if (!(s->flags & SS_STACK_COMPLETE))
		at = trace(h, named_ip(h, 2, "(incomplete)"), 0);
	for (uint32_t i = s->n; i-- > (s->n > 1 ? 1 : 0);)
		at = trace(h, ip(h, h->m->stacks.pc.at[s->first + i]), at);
	h->trace[stack] = at;
	return at;
}

/* Return: 0, -ENOMEM, or -EIO after a write error. */
static int line(struct heaptrack *h, char mode, uint32_t stack, uint64_t size)
{
	uint32_t t = trace_of(h, stack), id;
	bool fresh;

	id = intern_pair(h->infos, size, t, &fresh);
	if (fresh)
		fprintf(h->out, "a %llx %x\n", (unsigned long long)size, t);
	if (!id)
		return -ENOMEM;
	line1(h->out, mode, id - 1);
	h->live += mode == '+' ? size : -size;
	return ferror_unlocked(h->out) ? -EIO : 0;
}

/* A block in a sample represents several, which share its bytes. */
static int block(struct heaptrack *h, char mode, const struct model_block *b)
{
	struct estimate e = model_estimate(h->m, b);
	int ret = e.blocks > MAX_LINES ? -EFBIG : 0;

	for (uint64_t i = 0; i < e.blocks && !ret; i++)
		ret = line(h, mode, b->stack, e.bytes / e.blocks + (i < e.bytes % e.blocks));
	return ret;
}

static void advance(struct heaptrack *h, uint64_t ns)
{
	if (ns / 1000000 <= h->ms)
		return;
	h->ms = ns / 1000000;
	line1(h->out, 'c', h->ms);
}

static int lines(struct heaptrack *h, char mode, uint32_t stack, uint64_t size, uint64_t n)
{
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++)
		ret = line(h, mode, stack, size);
	return ret;
}

/*
 * Writes culled blocks, whose order is not known.  They must not change the peak, so the live bytes
 * with them must stay below it.  To heaptrack, a block is temporary if it is freed directly after its
 * allocation: the temporary ones are written one by one, the others as many at a time as fit.
 */
static int culled(struct heaptrack *h, const struct mp_culled *c)
{
	uint64_t blocks = mp_culled_count(c), size = c->size, room, n;
	int ret = blocks > MAX_LINES ? -EFBIG : 0;

	if (h->live + size >= h->m->sums.kept_peak_bytes)
		size = h->m->sums.kept_peak_bytes > h->live
			   ? h->m->sums.kept_peak_bytes - h->live - 1
			   : 0;
	room = size ? (h->m->sums.kept_peak_bytes - h->live - 1) / size : blocks;
	for (uint64_t done = 0; done < blocks && !ret; done += n) {
		n = c->flags & MP_CULLED_TEMPORARY || !room ? 1 : room;
		n = n < blocks - done ? n : blocks - done;
		ret = lines(h, '+', c->stack, size, n);
		ret = ret ? ret : lines(h, '-', c->stack, size, n);
	}
	return ret;
}

/* Writes the sums up to @ns: in a recording they can precede events older than they are. */
static int sums_until(struct heaptrack *h, uint64_t ns)
{
	int ret = 0;

	for (; h->written < h->sums.n && !ret; h->written++) {
		const struct mp_culled *c = &h->sums.at[h->written];

		if (c->last_ns > ns)
			break;
		advance(h, c->last_ns);
		ret = culled(h, c);
	}
	return ret;
}

static int on_sum(struct heaptrack *h, const struct mp_culled *c)
{
	struct mp_culled part = *c;
	uint64_t unjudged;

	if (h->m->source.selection)
		part = selection_part(h->m->source.selection, c, &unjudged);
	if (!part.blocks)
		return 0;
	if (h->written > h->sums.n / 2) {
		h->sums.n -= h->written;
		memmove(h->sums.at, h->sums.at + h->written, h->sums.n * sizeof(*c));
		h->written = 0;
	}
	return vec_push(&h->sums, part) ? -ENOMEM : 0;
}

static int on_event(void *ctx, const struct mp_event *ev)
{
	struct heaptrack *h = ctx;
	int ret = sums_until(h, ev->time_ns);

	advance(h, ev->time_ns);
	return !ret && ferror_unlocked(h->out) ? -EIO : ret;
}

static int on_item(void *ctx, const struct mpf_item *item)
{
	struct heaptrack *h = ctx;
	int ret = 0;

	switch (item->kind) {
	case MPF_SAMPLE:
		/* A sample can also precede older events; heaptrack uses only the highest one. */
		line1(h->out, 'R', item->sample.rss / PAGE);
		break;
	case MPF_CULLED:
		ret = on_sum(h, &item->culled);
		break;
	default:
		break;
	}
	return !ret && ferror_unlocked(h->out) ? -EIO : ret;
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	return block(ctx, '+', b);
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	(void)by;
	(void)how;
	return block(ctx, '-', b);
}

static void write_head(const struct model *m, FILE *out)
{
	/* The machine's total memory is not in a recording: 0 pages. */
	fprintf(out, "v 10400 3\nX %s\nI %x 0\n", printable(m->info.cmdline), PAGE);
	if (!m->info.mode)
		fputs("A\n", out);
}

int heaptrack_write(struct model *m, FILE *out, struct mp_err *err)
{
	struct heaptrack h = {.m = m, .out = out};
	struct history_sink sink = {.item = on_item,
				    .event = on_event,
				    .allocated = on_allocated,
				    .ended = on_ended,
				    .ctx = &h};
	int ret = -ENOMEM;

	h.strings = intern_new();
	h.ips = intern_new();
	h.traces = intern_new();
	h.infos = intern_new();
	h.trace = calloc(m->stacks.n, sizeof(*h.trace));
	if (h.strings && h.ips && h.traces && h.infos && h.trace) {
		write_head(m, out);
		ret = model_replay(m, &sink, NULL, err);
		if (!ret && (ret = sums_until(&h, UINT64_MAX)))
			mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s",
				strerror(-ret));
	} else {
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	if (!ret)
		advance(&h, m->facts.end_ns);
	vec_free(&h.sums);
	intern_free(h.strings);
	intern_free(h.ips);
	intern_free(h.traces);
	intern_free(h.infos);
	free(h.trace);
	return ret;
}
