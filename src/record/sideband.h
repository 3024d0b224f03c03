/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The side band: perf events about executable mappings, exec and exit of the target, which need no
 * hooks.  The events are opened per processor for all processes and filtered here.  Needs
 * CAP_PERFMON (or perf_event_paranoid below 1).
 */
#ifndef RECORD_SIDEBAND_H
#define RECORD_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/proc/maps.h"
#include "lib/vec.h"

struct sideband;

/* The target mapped code from a file, or changed the protection of such a mapping. */
struct sideband_code {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct map map;	  /* the path is owned; no device */
};

struct sideband_news {
	bool mapped; /* the target mapped something executable */
	bool execed, exited;
	uint64_t lost; /* events lost (PERF_RECORD_LOST): the other members can be incomplete */
	VEC(struct sideband_code) code; /* in the order of time; none before Linux 4.1 */
};

/* Return: 0, or -errno (-EACCES, -EPERM: not permitted; the caller then polls /proc/PID/maps). */
int sideband_open(pid_t pid, struct sideband **out);
/* Return: a descriptor that is readable when a process of this machine has mapped code, begun or ended; it stays @s's. */
int sideband_fd(const struct sideband *s);
/* Adds to @news what happened since the last call.  What does not fit into memory counts as lost. */
void sideband_poll(struct sideband *s, struct sideband_news *news);
/* Empties the list of code. */
void sideband_forget_code(struct sideband_news *news);
/* @s can be NULL. */
void sideband_close(struct sideband *s);

#endif
