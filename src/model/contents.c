/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/contents.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/vec.h"
#include "model/history/history.h"

struct contents_reading {
	struct contents *c;
	VEC(bool) stacks; /* [id]: it was seen */
};

static int see_stack(struct contents_reading *r, uint32_t id)
{
	while (r->stacks.n <= id) {
		if (id > 1u << 28 || vec_push(&r->stacks, false))
			return -ENOMEM;
	}
	r->stacks.at[id] = true;
	return 0;
}

static int on_event(void *ctx, const struct mp_event *ev)
{
	const struct contents_reading *r = ctx;
	struct contents *c = r->c;

	c->items[MPF_EVENT]++;
	c->events[ev->kind]++;
	if (ev->stack && (ev->stack >= r->stacks.n || !r->stacks.at[ev->stack]))
		c->unknown_stacks++;
	if (ev->hook >= c->items[MPF_HOOK] && ev->kind != EV_FAULT)
		c->unknown_hooks++;
	if (ev->time_ns > c->end_ns)
		c->end_ns = ev->time_ns;
	return 0;
}

static void add_lifetime(struct contents *c, uint64_t ns, uint64_t blocks)
{
	uint64_t most = 1000;
	int i = 0;

	for (; i < LIFETIMES - 1 && ns >= most; i++)
		most *= 10;
	c->lifetime[i] += blocks;
}

/* Each class of lifetimes is within a power of ten. */
static void see_culled(struct contents *c, const struct mp_culled *sum)
{
	c->culled_blocks += mp_culled_count(sum);
	c->culled_events += mp_culled_events(sum);
	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		add_lifetime(c, lifetime_least(i), sum->lifetime[i]);
}

static int on_item(void *ctx, const struct mpf_item *it)
{
	struct contents_reading *r = ctx;
	struct contents *c = r->c;

	c->items[it->kind]++;
	switch (it->kind) {
	case MPF_STACK:
		return see_stack(r, it->stack.id);
	case MPF_CULLED:
		see_culled(c, &it->culled);
		return 0;
	case MPF_FINISH:
		c->has_finish = true;
		if (it->finish.end_ns > c->end_ns)
			c->end_ns = it->finish.end_ns;
		return 0;
	default:
		return 0;
	}
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	(void)how;
	add_lifetime(((struct contents_reading *)ctx)->c,
		     by->time_ns > b->time_ns ? by->time_ns - b->time_ns : 0, 1);
	return 0;
}

static int on_live(void *ctx, const struct model_block *b)
{
	(void)b;
	++*(uint64_t *)ctx;
	return 0;
}

int contents_read(const char *path, struct contents *c, struct mp_err *err)
{
	struct contents_reading r = {.c = c};
	struct history_sink sink = {
	    .item = on_item, .event = on_event, .ended = on_ended, .ctx = &r};
	struct history *h = history_new(&sink);
	struct stat st;
	int ret;

	*c = (struct contents){.binaries.file.fd = -1};
	ret = h ? mpf_open(path, &c->reader, &c->info, err)
		: mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret)
		ret = history_read(h, c->reader, NULL, err);
	if (!ret) {
		c->truncated = mpf_truncated(c->reader);
		c->file_bytes = stat(path, &st) ? 0 : (uint64_t)st.st_size;
		ret = history_live(h, on_live, &c->leaked);
	}
	history_free(h);
	vec_free(&r.stacks);
	if (!ret)
		ret = binaries_open(&c->binaries, path, err);
	if (ret)
		contents_free(c);
	return ret;
}

void contents_free(struct contents *c)
{
	mpf_reader_free(c->reader);
	c->reader = NULL;
	binaries_close(&c->binaries);
}
