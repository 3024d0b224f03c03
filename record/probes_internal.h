/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between probes.c, which opens events, and samples.c, which reads what they tell. */
#ifndef RECORD_PROBES_INTERNAL_H
#define RECORD_PROBES_INTERNAL_H

#include "lib/vec.h"
#include "record/probes.h"
#include "record/ring.h"

struct event {
	uint64_t id; /* the kernel's */
	int fd;
	uint32_t point;
};

struct point {
	enum probe_kind kind;
	uint16_t hook;
	bool is_major; /* PROBE_FAULT */
	uint32_t stack_bytes;
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config;
};

struct cpu {
	int cpu, fd; /* fd: the event that owns the ring */
	struct ring ring;
	uint8_t *buf; /* what was drained, its first left bytes still to be told */
	uint64_t left;
};

/* Which event tells of a thread and a point: the first one that did. */
struct teller {
	uint64_t key, id;
};

struct probes {
	pid_t pid;
	const struct arch *arch;
	int tracefs;	     /* -1: not open */
	uint64_t ring_bytes; /* of each processor */
	size_t ring_length;
	bool counts_lost; /* each event counts what its ring had no room for */
	uint64_t lost_told;
	bool page_sizes; /* faults come with the size of their page */
	bool user_only;	 /* faults of system calls may not be seen */
	bool execed;	 /* what comes now is another program's */
	VEC(struct cpu) cpus;
	VEC(struct event) events; /* ascending by id */
	VEC(struct point) points;
	VEC(pid_t) tids; /* that have events of their own */
	struct teller *teller;
	uint64_t tellers, told;
};

/* Samples that were lost up to now, told by a record of the kernel's or not; 0: it does not count.
 */
uint64_t probes_lost(const struct probes *p);
/* Return: the event that the kernel calls @id, or NULL. */
const struct event *probes_event(const struct probes *p, uint64_t id);

#endif
