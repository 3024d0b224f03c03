/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the recorder's threads share: the reader, the aggregator, and the threads that call the
 * functions of recorder.h.  Each group of fields says who changes it and what protects it.  The
 * groups are on different cache lines, so that a thread which changes its group often does not slow
 * down the others, which only read theirs: the aggregator reads selects at every allocation.
 */
#ifndef RECORD_SHARED_H
#define RECORD_SHARED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/cache_line.h"
#include "lib/vec.h"
#include "record/clock.h"
#include "record/queue.h"
#include "record/recorder.h"

struct view;

struct recorder_shared {
	/* Constant while the threads run */
	struct queue *queue;
	/* Indices of the claimed slots.  The reader appends, then increments nactive (release);
	 * other threads read up to nactive (acquire). */
	uint32_t *active;

	/* Requests to the threads: changed by callers of recorder.h, seldom.  Atomic, but keep,
	 * which is set before stop. */
	bool stop;		 /* tells the reader to drain once more and end ... */
	bool keep;		 /* ... and to leave the session to the next recorder */
	bool let_go;		 /* tells the aggregator that the recording ends now */
	bool selects;		 /* some allocations are or were left out */
	uint64_t paused;	 /* bit 0: paused now; bits 1-63: ticks of the last change */
	uint64_t barrier_wanted; /* the newest flush that a thread waits for */
	bool view_wanted;	 /* view is set and not filled yet */
	bool save_wanted;	 /* the next boundary writes the live heap */
	uint32_t thin_least;	 /* the least pressure (record/reader.c) */
	char apart_from_reader[CACHE_LINE];

	/* Changed by the reader, atomic */
	uint32_t nactive;
	bool stalled; /* last result of stall_look(); after the reader's end recorder_stop()'s */
	struct recorder_cost cost; /* changed with lock */
	char apart_from_aggregator[CACHE_LINE];

	uint64_t moved; /* changed by the aggregator whenever it makes progress; atomic */
	/* Changed only by the aggregator, with clock_lock; other threads read it with the lock */
	pthread_mutex_t clock_lock;
	struct clock clock;

	pthread_mutex_t lock;		   /* protects all that follows */
	pthread_cond_t flushed;		   /* boundary or view has changed, or ended is set */
	struct recorder_boundary boundary; /* changed by the aggregator only */
	bool ended;			   /* the aggregator's end */
	struct recorder_progress shown;
	struct view *view; /* that a thread waits for; it is filled by the aggregator */
	VEC(char *) marks; /* names of marks that are not in the file yet; owned */
};

#endif
