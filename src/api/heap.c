/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The live heap of a process by type, and its resident memory. */
#include <errno.h>
#include <stdlib.h>
#include "api/apart.h"
#include "api/error.h"
#include "api/modes.h"
#include "api/sized.h"
#include "attach/target.h"
#include "leaks/heap_report.h"
#include "lib/path.h"

struct memprof_heap {
	struct heap_report r;
	size_t next; /* index in r.types */
};

/* Return: 0, or a negative errno with @err. */
static int take_options(const struct memprof_heap_options *from, struct memprof_heap_options *o,
			struct mp_err *err)
{
	*o = (struct memprof_heap_options){.size = sizeof(*o)};
	if (from && !sized_take(from, from->size, o, sizeof(*o)))
		return sized_refuse(err);
	return 0;
}

static int take(struct memprof_heap *h, struct target *t, const struct memprof_heap_options *o,
		struct mp_err *err)
{
	const struct heap_report_options wanted = {0};
	struct snapshot_plan plan;
	int ret = mode_plan(&plan, t, o->mode, o->max_pause_ms, err);

	if (ret)
		return target_ask_again(t, ret, err);
	ret = heap_report_take(&h->r, t, &plan, &wanted, err);
	if (ret || !h->r.end.what[0])
		return ret;
	*err = h->r.end;
	return -EBUSY;
}

/* What memprof_heap_take() does in a thread of its own. */
struct examination {
	pid_t pid;
	struct memprof_heap *h;
	struct memprof_heap_options o;
	struct mp_err *err;
};

static int examine(void *arg)
{
	const struct examination *e = arg;
	struct target t;
	int ret = target_look(&t, e->pid, e->err);

	if (ret)
		return ret;
	ret = take(e->h, &t, &e->o, e->err);
	target_close(&t);
	return ret;
}

int memprof_heap_take(pid_t pid, const struct memprof_heap_options *options, memprof_heap **out,
		      struct memprof_error *err)
{
	struct mp_err why = {0};
	struct examination e = {.pid = pid, .h = calloc(1, sizeof(*e.h)), .err = &why};
	int ret;

	if (!e.h)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	ret = take_options(options, &e.o, &why);
	if (!ret)
		ret = apart_run(examine, &e, &why);
	if (ret) {
		memprof_heap_free(e.h);
		return mode_error(err, ret, &why);
	}
	*out = e.h;
	return MEMPROF_OK;
}

void memprof_heap_free(memprof_heap *h)
{
	if (h)
		heap_report_free(&h->r);
	free(h);
}

void memprof_heap_about(const memprof_heap *h, struct memprof_heap_about *out)
{
	const struct resident *r = &h->r.resident;

	sized_give(&(struct memprof_heap_about){.live_blocks = h->r.types.count,
						.live_bytes = h->r.types.bytes,
						.pause_ns = h->r.m.snapshot.pause_ns,
						.exact = h->r.m.census.exact,
						.live = r->live,
						.cached = r->cached,
						.metadata = r->metadata,
						.free = r->free,
						.stacks = r->stacks,
						.modules_data = r->modules_data,
						.modules_text = r->modules_text,
						.files = r->files,
						.shared = r->shared,
						.anonymous = r->anonymous,
						.total = r->total,
						.rss = r->rss,
						.swap = r->swap},
		   sizeof(*out), out);
}

int memprof_heap_next(memprof_heap *h, struct memprof_heap_type *out)
{
	const struct heap_type *t;

	if (h->next == h->r.types.list.n) {
		h->next = 0;
		return 0;
	}
	t = &h->r.types.list.at[h->next++];
	sized_give(&(struct memprof_heap_type){.type = t->type[0] ? t->type : NULL,
					       .library = t->owner ? path_base(t->owner) : NULL,
					       .block_size = t->size,
					       .count = t->count,
					       .bytes = t->bytes},
		   sizeof(*out), out);
	return 1;
}
