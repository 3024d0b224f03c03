/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the columns of a chunk of events (formats/FORMAT.md). */
#ifndef FORMATS_EVENT_READ_H
#define FORMATS_EVENT_READ_H

#include "formats/chunk_read.h"
#include "formats/event_code.h"

struct event_reader {
	struct event_state es;
	const uint8_t *at[COL_ITEMS], *end[COL_ITEMS]; /* what is left of each column */
	bool bad;				       /* the columns do not decode */
};

void event_reader_free(struct event_reader *r);
/* Forgets the columns. */
void events_end_chunk(struct event_reader *r);

/**
 * events_open() - find the columns in a payload
 * @f: its payload is that of a chunk of events; set to COL_ITEMS
 *
 * Return: NULL, or why the chunk cannot be read.
 */
const char *events_open(struct event_reader *r, struct chunk_file *f);

static inline bool events_left(const struct event_reader *r)
{
	return r->at[COL_TAG] < r->end[COL_TAG];
}

/* Reads the next entry.  Return: true with @ev filled, false if it is the next item.  At the end of
 * a column, and if a value is not valid, sets r->bad. */
bool events_next(struct event_reader *r, struct chunk_state *st, struct mp_event *ev);
/* As events_next(), but does not read the tag of an item. */
static inline bool events_next_event(struct event_reader *r, struct chunk_state *st,
				     struct mp_event *ev)
{
	return *r->at[COL_TAG] && events_next(r, st, ev);
}

#endif
