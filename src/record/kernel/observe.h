/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The observer: a thread that reads the samples of kernel probes and writes the records that the
 * agent would have written into the rings of a session block that only memprof maps
 * (inject/session.h, session_observe()).  Reader, aggregator and file are the same for both.
 *
 * It does not observe: throwing operator new of an allocator with its own implementation (a return
 * probe would break the unwinding of the exception), shmat and shmdt, xallocx, the usable size of
 * a block.
 */
#ifndef RECORD_KERNEL_OBSERVE_H
#define RECORD_KERNEL_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>
#include "inject/session.h"
#include "lib/err.h"

struct observer;

struct observer_config {
	struct session *session;
	bool faults;		  /* page faults instead of the session's hooks */
	bool user_only;		  /* no page faults inside system calls */
	uint32_t stack_bytes;	  /* stack bytes copied per allocation or fault; 0: 16 KiB */
	uint64_t ring_bytes;	  /* of each processor's ring; 0: default */
	uint64_t *complete_until; /* output: ticks up to which all records are in the rings */
	/* As in struct recorder_config. */
	bool (*code_changed)(void *ctx);
	void *ctx;
};

/* Opens probes on all hooks of the session and starts the observer's thread.  Return: 0 or a
 * negative errno with @err. */
int observer_start(const struct observer_config *config, struct observer **o, struct mp_err *err);
/* Opens probes on hooks that were added to the session's journal since the last call.  Return: as
 * above. */
int observer_add(struct observer *o, struct mp_err *err);
/* Stops the thread, writes the last samples to the rings and removes all probes.  @o can be NULL.
 */
void observer_stop(struct observer *o);
/* Names of functions that are not observed, "" if none; valid until observer_stop(). */
const char *observer_left_out(const struct observer *o);

#endif
