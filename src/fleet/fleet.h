/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records the processes that a filter wants, those that run and those that start, and pushes the profile of each
 * (attach --push, --metrics, --all).
 *
 * One process records all of them (fleet/recorders.h).  In this one, the caller's thread finds processes and answers scrapes,
 * and each recorded process has a thread that pushes.
 */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include "fleet/processes.h"
#include "fleet/recorders.h"
#include "lib/err.h"
#include "push/push.h"

struct scrape;

/* Called by the thread of fleet_run(). */
struct fleet_notices {
	/* The processes were looked at for the first time. */
	void (*found)(void *ctx, const struct processes *p);
	/* It is recorded; @by_other: by another memprof, which stays. */
	void (*begun)(void *ctx, pid_t pid, const char *name, bool by_other);
	void (*message)(void *ctx, pid_t pid, const char *name, const char *text);
	/* It is not recorded, or no longer. */
	void (*ended)(void *ctx, const char *name, const struct recorders_message *m);
	void *ctx;
};

struct fleet_options {
	struct process_filter filter;
	const struct push_options *push;
	uint32_t most;	       /* processes that are recorded at the same time */
	uint64_t for_ms;       /* 0: until told to end */
	int stop;	       /* a descriptor that can be read when it must end */
	struct scrape *scrape; /* NULL: none */
	struct fleet_notices notices;
};

struct fleet_result {
	uint64_t windows, windows_lost;
	uint32_t recorded; /* processes */
	int status; /* enum mp_exit of the first process that could not be recorded or restored */
};

/**
 * fleet_run() - record until told to end, or until the last process of those that the filter names by pid has ended
 * @r: after recorders_start(); stopped
 *
 * Return: 0 or a negative errno with @err: -ESRCH: the recorder was killed, and some processes are not restored.  @result:
 * filled in both cases.
 */
int fleet_run(const struct fleet_options *o, struct recorders *r, struct fleet_result *result,
	      struct mp_err *err);

#endif
