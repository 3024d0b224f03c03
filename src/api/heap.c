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
	struct memprof_heap_options o;
	struct heap_report r;
	size_t next; /* index in r.types */
};

static int take_report(struct target *t, void *arg, struct mp_err *err)
{
	const struct heap_report_options wanted = {0};
	struct memprof_heap *h = arg;
	struct snapshot_plan plan;
	int ret = mode_plan(&plan, t, h->o.mode, h->o.max_pause_ms, err);

	if (ret)
		return target_ask_again(t, ret, err);
	ret = heap_report_take(&h->r, t, &plan, &wanted, err);
	if (ret || !h->r.end.what[0])
		return ret;
	*err = h->r.end;
	return -EBUSY;
}

int memprof_heap_take(pid_t pid, const struct memprof_heap_options *o, memprof_heap **out,
		      struct memprof_error *err)
{
	memprof_heap *h = calloc(1, sizeof(*h));
	struct mp_err why = {0};
	int ret;

	if (!h)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	ret = sized_take(o, &h->o, sizeof(h->o), &why);
	if (!ret)
		ret = apart_run(pid, take_report, h, &why);
	if (ret) {
		memprof_heap_free(h);
		return mode_error(err, ret, &why);
	}
	*out = h;
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
