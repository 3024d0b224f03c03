/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends the recording to a receiver instead of writing a file (--to, --announce). */
#ifndef CONTROL_DELIVERY_H
#define CONTROL_DELIVERY_H

#include <stdbool.h>
#include "control/state.h"

/* Is the recording sent, not written to a file? */
static inline bool delivery_wanted(const struct recording_options *o)
{
	return o->to || o->announce;
}

/**
 * delivery_open() - connect to the receiver, before the target is touched
 * With --announce it waits until one connects.  Sets rec->path to where the recording is sent.
 * Return: 0, or a negative errno with @err.
 */
int delivery_open(struct recording *rec, const struct recording_options *o, struct mp_err *err);
/* The recorder has its copy of rec->sender_fd: when it closes that, the recording is complete. */
void delivery_begun(struct recording *rec);
/* Reports when the connection broke and when it was made again. */
void delivery_tell(struct recording *rec);
/* The first @bytes must be where they are safe: recorder_config.delivered, with a struct recording. */
int delivery_wait(void *rec, uint64_t bytes);
/* The target is released.  @failed: the recording did not begin: the receiver deletes what it has of it. */
void delivery_ending(struct recording *rec, bool failed);
/* Waits until all is delivered, after delivery_ending().  Return: 0, or a negative errno with @err. */
int delivery_finish(struct recording *rec, struct mp_err *err);
/* When no request to the recorder waits for the delivery any more. */
void delivery_free(struct recording *rec);

#endif
