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

struct sideband;

struct sideband_news {
	bool mapped; /* the target mapped something executable */
	bool execed, exited;
	uint64_t lost; /* events lost (PERF_RECORD_LOST): the other members can be incomplete */
};

/* Return: 0, or -errno (-EACCES, -EPERM: not permitted; the caller then polls /proc/PID/maps). */
int sideband_open(pid_t pid, struct sideband **out);
/* Return: what happened since the last call. */
struct sideband_news sideband_poll(struct sideband *s);
/* @s can be NULL. */
void sideband_close(struct sideband *s);

#endif
