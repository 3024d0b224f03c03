/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A part of a recording that was read ahead: events, the other items between them, and what the history
 * (model/history/history.c) makes of the events. */
#ifndef MODEL_HISTORY_BATCH_H
#define MODEL_HISTORY_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/err.h"
#include "model/history/history.h"

#define BATCH_EVENTS 4096u
#define BATCH_ITEMS  128u
/* The end of a block before, that of a block at the same address, and an allocation. */
#define MOST_TOLD 3u

enum told { TOLD_ALLOCATED, TOLD_FAULTED, TOLD_ENDED };

/* Something that the sink is to be told. */
struct telling {
	struct model_block block;
	uint32_t event;	   /* the index of the event that says it */
	uint8_t what;	   /* enum told */
	uint8_t how;	   /* TOLD_ENDED: enum block_end */
	bool begins_chain; /* TOLD_ENDED: the block becomes the first member of its chain */
};

struct batch_item {
	struct mpf_item item; /* the texts, and the like, are in batch.room */
	uint32_t at;	      /* number of events before it */
};

struct batch {
	struct mp_event event[BATCH_EVENTS];
	struct batch_item item[BATCH_ITEMS];
	struct telling telling[BATCH_EVENTS * MOST_TOLD];
	uint32_t events, items, tellings;
	char *room;
	size_t used, cap;
	bool last;
	double share; /* of the recording that was read */
};

/* A reading ahead. */
struct batch_reader {
	struct mpf_reader *r;
	struct mpf_item held; /* was read, but had no room in the batch before */
	bool holds;
	int ret; /* of the last batch: 0, or a negative errno, with err */
	struct mp_err err;
};

/* Fills @b with what follows; the last one can be empty. */
void batch_read(struct batch *b, struct batch_reader *from);
void batch_release(struct batch *b);

#endif
