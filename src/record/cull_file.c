/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/cull_file.h"

#include <errno.h>
#include <string.h>
#include "formats/file.h"
#include "lib/live.h"
#include "record/cull.h"

struct strip {
	uint64_t age_ns;
	struct cull *cull; /* created with the first item, since it writes to the new file */
	struct live *live; /* addresses of the live blocks */
	bool ended;	   /* the culling has been flushed and no event was added since */
};

/* Tracks the live addresses.  Return: 1 if @ev allocates an address that is live, else 0, or
 * -ENOMEM. */
static int follow(struct strip *s, const struct mp_event *ev)
{
	struct live_block b = {.addr = ev->addr}, old = {0};

	if (ev->kind == EV_FREE || ev->kind == EV_REALLOC_BEGIN) {
		(void)live_take(s->live, ev->addr, &old);
		return 0;
	}
	if (!ev->addr || (ev->kind != EV_ALLOC && ev->kind != EV_REALLOC_END))
		return 0;
	return live_put(s->live, &b, &old) ? -ENOMEM : old.addr != 0;
}

static int put_event(struct strip *s, const struct mp_event *ev)
{
	int replaced = follow(s, ev), ret;

	if (replaced < 0)
		return replaced;
	s->ended = false;
	/* Write the events that are old enough by now, before they can be culled. */
	ret = s->age_ns == UINT64_MAX ? 0 : cull_advance(s->cull, ev->time_ns);
	/* A carried block is not a call, so it must not be added to sums of calls. */
	return ret ? ret
		   : cull_put(s->cull, ev,
			      replaced || (ev->kind == EV_ALLOC && ev->flags & EV_F_CARRIED));
}

/* Writes the events held back, before the items that end the file. */
static int end(struct strip *s)
{
	int ret = s->ended ? 0 : cull_advance(s->cull, UINT64_MAX);

	s->ended = true;
	return ret ? ret : cull_put_sums(s->cull);
}

static int on_item(void *ctx, struct mpf_writer *w, const struct mpf_item *it)
{
	struct strip *s = ctx;
	int ret = 0;

	if (!s->cull)
		s->cull = cull_new(s->age_ns, w);
	if (!s->cull)
		return -ENOMEM;
	if (it->kind == MPF_EVENT)
		return put_event(s, &it->event);
	if (it->kind == MPF_SYMBOLS || it->kind == MPF_FINISH)
		ret = end(s);
	return ret ? ret : mpf_put_item(w, it);
}

static int on_end(void *ctx, struct mpf_writer *w)
{
	struct strip *s = ctx;

	(void)w;
	return s->cull ? end(s) : 0;
}

int recording_strip(const char *from, const char *to, uint64_t age_ns, bool *truncated,
		    struct mp_err *err)
{
	struct strip s = {.age_ns = age_ns, .live = live_new(80)};
	struct mpf_change change = {.item = on_item, .end = on_end, .binaries = true, .ctx = &s};
	struct mpf_reader *r = NULL;
	struct mp_info info = {0};
	int ret = s.live ? mpf_open(from, &r, &info, err)
			 : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");

	if (!ret) {
		if (info.sample_interval)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is a sampled recording, whose blocks represent others "
				      "and cannot be replaced by sums",
				      from);
		if (info.processes)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is of several processes: strip their recordings, then "
				      "merge them",
				      from);
		if (info.what == MP_PAGE_FAULTS)
			ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
				      "%s is of page faults: it has no blocks to strip", from);
		mpf_reader_free(r);
	}
	if (!ret)
		ret = mpf_copy(from, to, &change, truncated, err);
	cull_free(s.cull);
	live_free(s.live);
	return ret;
}
