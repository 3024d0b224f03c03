/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the columns of a chunk of events (formats/FORMAT.md). */
#ifndef FORMATS_EVENT_WRITE_H
#define FORMATS_EVENT_WRITE_H

#include <stddef.h>
#include "formats/chunk_write.h"
#include "formats/event_code.h"

/* A chunk is written when it has this many tags, or this many bytes in COL_REST. */
#define CHUNK_EVENTS_TARGET (128u << 10)
/* Room for one event more */
#define COLUMN_ROOM (CHUNK_EVENTS_TARGET + 128u)
#define LENGTHS_MAX (5u * COLUMNS)			    /* before the columns */
#define EVENTS_MAX  (LENGTHS_MAX + COL_ITEMS * COLUMN_ROOM) /* bytes without COL_ITEMS */

struct event_writer {
	struct event_state es;
	uint32_t *number;	/* last one of an address, by its hash */
	uint8_t *column;	/* LENGTHS_MAX, then COL_ITEMS, each COLUMN_ROOM */
	uint8_t *at[COL_ITEMS]; /* the end of each */
	bool any;		/* the chunk has events in columns */
};

/* Return: 0, or -ENOMEM; event_writer_free() in both cases. */
int event_writer_init(struct event_writer *w);
void event_writer_free(struct event_writer *w);

/* Empties the columns. */
void events_begin_chunk(struct event_writer *w);

/* Return: the bytes in column @i. */
static inline size_t events_bytes(const struct event_writer *w, size_t i)
{
	return (size_t)(w->at[i] - (w->column + LENGTHS_MAX + i * COLUMN_ROOM));
}

static inline bool events_full(const struct event_writer *w)
{
	return events_bytes(w, COL_TAG) >= CHUNK_EVENTS_TARGET ||
	       events_bytes(w, COL_REST) >= CHUNK_EVENTS_TARGET;
}

/* Notes that the next entry is in COL_ITEMS, which the caller has. */
static inline void events_put_item(struct event_writer *w)
{
	*w->at[COL_TAG]++ = 0;
}

/**
 * events_put() - put an event into the columns
 * @time_ns: as it is in the file
 *
 * Return: false if the event has to be an item.
 */
bool events_put(struct event_writer *w, struct chunk_state *st, const struct mp_event *ev,
		uint64_t time_ns);

/* Prefetches where events_put() looks for the block at @addr. */
void events_prefetch(const struct event_writer *w, uint64_t addr);
/* To be called some time after events_prefetch(): prefetches the block. */
void events_prefetch_block(const struct event_writer *w, uint64_t addr);

/**
 * events_chunk() - make the chunk of the columns
 * @items: COL_ITEMS, of @n bytes
 * @c: filled with parts that are in @items and in the columns
 */
void events_chunk(struct event_writer *w, const uint8_t *items, size_t n, struct raw_chunk *c);

#endif
