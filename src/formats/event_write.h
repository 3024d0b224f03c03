/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the columns of a chunk of events (formats/FORMAT.md). */
#ifndef FORMATS_EVENT_WRITE_H
#define FORMATS_EVENT_WRITE_H

#include <stddef.h>
#include "formats/event_code.h"

/* A chunk is written when it has this many tags, or this many bytes in COL_REST. */
#define CHUNK_EVENTS_TARGET (128u << 10)
/* Room for one event more */
#define COLUMN_ROOM (CHUNK_EVENTS_TARGET + 128u)
#define EVENTS_MAX  (COL_ITEMS * COLUMN_ROOM + 5u * COLUMNS) /* bytes without COL_ITEMS */

struct event_writer {
	struct event_state es;
	uint32_t *number;	/* last one of an address, by its hash */
	uint8_t *column;	/* COL_ITEMS, each COLUMN_ROOM */
	uint8_t *at[COL_ITEMS]; /* the end of each */
	bool any;		/* the chunk has events in columns */
};

/* Return: 0, or -ENOMEM; event_writer_free() in both cases. */
int event_writer_init(struct event_writer *w);
void event_writer_free(struct event_writer *w);

/* Empties the columns. */
void events_begin_chunk(struct event_writer *w);

static inline bool events_full(const struct event_writer *w)
{
	return (size_t)(w->at[COL_TAG] - w->column) >= CHUNK_EVENTS_TARGET ||
	       (size_t)(w->at[COL_REST] - (w->column + COL_REST * COLUMN_ROOM)) >=
		   CHUNK_EVENTS_TARGET;
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

/**
 * events_gather() - make the payload of a chunk
 * @items: COL_ITEMS, of @n bytes
 * @to: EVENTS_MAX + @n bytes
 * @piece: set to the bytes of its COLUMNS parts, which compress better apart
 *
 * Return: the bytes of the payload.
 */
size_t events_gather(const struct event_writer *w, const uint8_t *items, size_t n, uint8_t *to,
		     size_t *piece);

#endif
