/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/stores.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "push/body.h"
#include "push/directory.h"

struct store {
	struct outbox *outbox;	      /* NULL: a directory */
	struct outbox_counts written; /* of a directory */
	bool failing;		      /* the last file could not be written */
};

struct stores {
	const struct stores_config *c;
	struct store store[PUSH_DESTINATIONS];
	pthread_mutex_t lock; /* protects what is of directories */
};

int stores_open(const struct stores_config *c, struct stores **out, struct mp_err *err)
{
	struct stores *s = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	s->c = c;
	pthread_mutex_init(&s->lock, NULL);
	for (size_t i = 0; !ret && i < c->n; i++) {
		const struct outbox_config one = {.destination = &c->destination[i],
						  .spool = c->spool,
						  .limit = c->limit,
						  .report = c->report,
						  .ctx = c->ctx};

		if (c->destination[i].kind != DESTINATION_DIRECTORY)
			ret = outbox_open(&one, &s->store[i].outbox, err);
	}
	if (ret)
		stores_close(s, 0);
	else
		*out = s;
	return ret;
}

const struct stores_config *stores_config(const struct stores *s)
{
	return s->c;
}

int stores_start(struct stores *s, struct mp_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < s->c->n; i++)
		ret = s->store[i].outbox ? outbox_start(s->store[i].outbox, err) : 0;
	return ret;
}

/* Windows of several processes end at the same time; the directory's limit is kept by one of them at a time. */
static void write_file(struct stores *s, size_t i, const char *name, pid_t pid, uint64_t unix_ns,
		       const struct body *b)
{
	const struct destination *d = &s->c->destination[i];
	struct store *store = &s->store[i];
	bool changed;
	int ret;

	pthread_mutex_lock(&s->lock);
	ret = directory_put(d->url, name, pid, unix_ns, b->bytes, b->n, s->c->limit);
	store->written.sent += !ret;
	store->written.dropped += ret != 0;
	changed = store->failing != (ret != 0);
	store->failing = ret != 0;
	pthread_mutex_unlock(&s->lock);
	if (changed)
		s->c->report(s->c->ctx, d, ret ? strerror(-ret) : NULL);
}

void stores_put(struct stores *s, size_t i, const char *name, pid_t pid, uint64_t unix_ns,
		const struct body *b)
{
	if (s->store[i].outbox)
		outbox_put(s->store[i].outbox, b->query, b->bytes, b->n);
	else
		write_file(s, i, name, pid, unix_ns, b);
}

struct outbox_counts stores_counts(struct stores *s, size_t i)
{
	struct outbox_counts c;

	if (s->store[i].outbox)
		return outbox_counts(s->store[i].outbox);
	pthread_mutex_lock(&s->lock);
	c = s->store[i].written;
	pthread_mutex_unlock(&s->lock);
	return c;
}

struct outbox_counts stores_close(struct stores *s, uint64_t ms)
{
	struct outbox_counts sum = {0};

	if (!s)
		return sum;
	for (size_t i = 0; i < s->c->n; i++) {
		const struct outbox_counts c =
		    s->store[i].outbox ? outbox_stop(s->store[i].outbox, ms) : s->store[i].written;

		sum.sent += c.sent;
		sum.rejected += c.rejected;
		sum.dropped += c.dropped;
		sum.waiting += c.waiting;
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
	return sum;
}
