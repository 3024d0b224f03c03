/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/pieces/piece_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/err.h"
#include "lib/privileges.h"
#include "lib/thread.h"

int piece_finish(const struct recorder_config *c, struct piece_end *e)
{
	if (e->pc)
		c->rotation.ending.symbolize(c->ctx, e->file, e->pc, e->n);
	free(e->pc);
	mpf_put_losses(e->file, &e->losses);
	mpf_put_finish(e->file, &e->finish);
	return mpf_close(e->file);
}

static void create(struct piece_thread *t)
{
	struct mp_err err = {0};

	t->created = NULL;
	t->create_error = mpf_create(t->path, &t->info, &t->created, &err);
}

/* Completes the piece, and deletes older ones only then: if memprof is killed, those that it should
 * keep are there. */
static void close_piece(struct piece_thread *t)
{
	uint32_t keep = t->config->info.keep;
	struct stat st = {0};
	int ret;

	fstat(mpf_descriptor(t->end.file), &st);
	ret = piece_finish(t->config, &t->end);
	if (!ret && keep)
		ret = kept_pieces_add(&t->kept, t->open, &st, keep);
	if (ret && !t->error)
		t->error = ret;
	snprintf(t->open, sizeof(t->open), "%s", t->path);
}

static void publish(struct piece_thread *t)
{
	if (!t->closed && rename(t->path, t->config->path))
		t->closed = -errno;
	if (t->closed)
		unlink(t->path);
}

static void work(struct piece_thread *t, enum piece_job job)
{
	if (job == PIECE_CREATE) {
		create(t);
	} else if (job == PIECE_CLOSE && !t->config->live_only) {
		close_piece(t);
	} else {
		if (job == PIECE_CLOSE)
			t->closed = piece_finish(t->config, &t->end);
		publish(t);
	}
}

static void *close_pieces(void *arg)
{
	struct piece_thread *t = arg;
	enum piece_job job;

	privileges_keep(PRIVILEGES_FILES);
	do {
		pthread_mutex_lock(&t->lock);
		while (t->job == PIECE_NOTHING)
			pthread_cond_wait(&t->changed, &t->lock);
		job = t->job;
		pthread_mutex_unlock(&t->lock);
		if (job != PIECE_QUIT)
			work(t, job);
		pthread_mutex_lock(&t->lock);
		t->job = PIECE_NOTHING;
		pthread_cond_broadcast(&t->changed);
		pthread_mutex_unlock(&t->lock);
	} while (job != PIECE_QUIT);
	return NULL;
}

void piece_thread_give(struct piece_thread *t, enum piece_job job)
{
	pthread_mutex_lock(&t->lock);
	t->job = job;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

int piece_thread_closed(struct piece_thread *t)
{
	int closed;

	pthread_mutex_lock(&t->lock);
	while (t->job != PIECE_NOTHING)
		pthread_cond_wait(&t->changed, &t->lock);
	closed = t->closed;
	pthread_mutex_unlock(&t->lock);
	return closed;
}

void piece_thread_wait(struct piece_thread *t)
{
	(void)piece_thread_closed(t);
}

bool piece_thread_is_busy(struct piece_thread *t)
{
	bool busy;

	pthread_mutex_lock(&t->lock);
	busy = t->job != PIECE_NOTHING;
	pthread_mutex_unlock(&t->lock);
	return busy;
}

int piece_thread_start(struct piece_thread *t, const struct recorder_config *config)
{
	t->config = config;
	snprintf(t->open, sizeof(t->open), "%s", config->path);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->runs = !thread_start(&t->thread, close_pieces, t);
	return t->runs ? 0 : -EAGAIN;
}

int piece_thread_stop(struct piece_thread *t)
{
	if (!t->runs)
		return 0;
	piece_thread_wait(t);
	piece_thread_give(t, PIECE_QUIT);
	pthread_join(t->thread, NULL);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
	t->runs = false;
	return t->error;
}
