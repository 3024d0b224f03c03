/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The thread that creates the files of the pieces of a rotated recording, and writes symbols and
 * end of a finished one.  Unlike the aggregator it keeps the file privileges that memprof started
 * with.
 */
#ifndef RECORD_PIECES_PIECE_THREAD_H
#define RECORD_PIECES_PIECE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "record/pieces/kept_pieces.h"
#include "record/recorder.h"

/* A job for the thread. */
enum piece_job { PIECE_NOTHING, PIECE_CREATE, PIECE_CLOSE, PIECE_PUBLISH, PIECE_QUIT };

/* The data of a piece's end. */
struct piece_end {
	struct mpf_writer *file;
	uint64_t *pc, n; /* addresses in the piece; owned */
	struct mp_losses losses;
	struct mp_finish finish;
};

struct piece_thread {
	const struct recorder_config *config;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock; /* protects job */
	pthread_cond_t changed;
	enum piece_job job;
	/* The thread's while a job is set, else the aggregator's */
	char path[4096];
	struct mp_info info;
	struct mpf_writer *created;
	struct piece_end end;
	int error, create_error; /* error of a finished piece; why a new one could not be created */
	int closed;		 /* result of the last PIECE_CLOSE or PIECE_PUBLISH */
	char open[4096];	 /* path of the piece that PIECE_CLOSE will close */
	struct kept_pieces kept; /* freed by the aggregator's end */
};

/* Starts the thread.  To be called before the recorder drops privileges.  Return: 0 or a negative
 * errno. */
int piece_thread_start(struct piece_thread *t, const struct recorder_config *config);
/* PIECE_CREATE: creates the file @t->path with @t->info; the result is @t->created, or NULL with
 * @t->create_error.  PIECE_CLOSE: writes the end @t->end and closes the file; with
 * recorder_config.live_only it then has PIECE_PUBLISH follow: gives the file @t->path the name
 * of the recording, or deletes it if @t->closed is an error.  The thread must not be busy. */
void piece_thread_give(struct piece_thread *t, enum piece_job job);
bool piece_thread_is_busy(struct piece_thread *t);
/* Waits until the thread is not busy. */
void piece_thread_wait(struct piece_thread *t);
/* Waits likewise.  Return: @t->closed. */
int piece_thread_closed(struct piece_thread *t);
/* Waits for the last job and ends the thread, if it runs; @t can be zeroed.  Return: 0, or the first error of a
 * finished piece. */
int piece_thread_stop(struct piece_thread *t);
/* Writes the symbols of @e and its end, and closes its file.  Return: 0 or the first error of the file. */
int piece_finish(const struct recorder_config *c, struct piece_end *e);

#endif
