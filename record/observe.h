/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The observer: a thread that takes the samples of kernel probes and writes what the agent would
 * have written, into the rings of a session block of our own (inject/session.h, session_observe()).
 * From there on both ways are one: reader, aggregator, file.
 *
 * What it cannot see: throwing operator new of an allocator of its own (a return probe would stand
 * in the way of the exception), shmat and shmdt, xallocx, the usable size of a block.
 */
#ifndef RECORD_OBSERVE_H
#define RECORD_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>
#include "inject/session.h"
#include "lib/err.h"

struct observer;

struct observer_config {
	struct session *session;
	bool faults;		  /* page faults instead of the session's hooks */
	bool user_only;		  /* of these, not those that system calls make */
	uint32_t stack_bytes;	  /* copied at each allocation or fault; 0: 16 KiB */
	uint64_t ring_bytes;	  /* of each processor's ring; 0: default */
	uint64_t *complete_until; /* set: ticks up to which all records are in the rings */
	/* As in struct recorder_config. */
	bool (*code_changed)(void *ctx);
	void *ctx;
};

/* Opens probes on all hooks of the session and starts.  Return: 0 or a negative errno with @err. */
int observer_start(const struct observer_config *config, struct observer **o, struct mp_err *err);
/* Puts probes on hooks that came into the session's journal since.  Return: as above. */
int observer_add(struct observer *o, struct mp_err *err);
/* Takes all probes out and tells what they saw last; the rings get nothing more.  NULL is fine. */
void observer_stop(struct observer *o);
/* Names of functions that are not observed, "" if none; valid until observer_stop(). */
const char *observer_left_out(const struct observer *o);

#endif
