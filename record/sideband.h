/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's side-band: what perf says about executable mappings of the target, without any
 * hook in it.  System-wide per processor, filtered here; needs CAP_PERFMON (or
 * perf_event_paranoid below 1).
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
	uint64_t lost; /* PERF_RECORD_LOST: the other members may be incomplete */
};

/* Return: 0, or -errno (-EACCES, -EPERM: forbidden; the caller then reads maps). */
int sideband_open(pid_t pid, struct sideband **out);
/* What came since the last call. */
struct sideband_news sideband_poll(struct sideband *s);
void sideband_close(struct sideband *s);

#endif
