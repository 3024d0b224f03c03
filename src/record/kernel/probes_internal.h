/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interface between probes.c, which opens events, and samples.c, which reads their samples. */
#ifndef RECORD_KERNEL_PROBES_INTERNAL_H
#define RECORD_KERNEL_PROBES_INTERNAL_H

#include "lib/vec.h"
#include "record/kernel/probes.h"
#include "record/ring.h"

struct event {
	uint64_t id; /* the kernel's event id */
	int fd;
	uint32_t point;
};

struct point {
	enum probe_kind kind;
	uint16_t hook;
	bool is_major;	 /* PROBE_FAULT */
	uint32_t number; /* of tracefs_add() */
	uint32_t stack_bytes;
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config;
};

struct cpu {
	int cpu, fd; /* fd: the event that owns the ring */
	struct ring ring;
	uint8_t *buf; /* drained records; the first @left bytes are not delivered yet */
	uint64_t left;
};

/* The event whose samples of a thread and point are used: the first one that delivered any. */
struct teller {
	uint64_t key, id;
};

struct probes {
	pid_t pid;
	const struct arch *arch;
	int tracefs;	     /* -1: not open */
	uint64_t ring_bytes; /* size of each processor's ring */
	size_t ring_length;
	bool counts_lost; /* each event counts the samples that did not fit in its ring */
	uint64_t lost_told;
	bool page_sizes; /* fault samples include the page size */
	bool user_only;	 /* page faults inside system calls cannot be seen */
	bool execed;	 /* exec seen: later samples are of another program */
	VEC(struct cpu) cpus;
	VEC(struct event) events; /* ascending by id */
	VEC(struct point) points;
	VEC(pid_t) tids; /* threads that have events of their own */
	struct teller *teller;
	uint64_t tellers, told;
};

/* Return: the samples lost so far, whether the kernel has written a record about them or not; 0:
 * this kernel does not count them. */
uint64_t probes_lost(const struct probes *p);
/* Return: the event that the kernel calls @id, or NULL. */
const struct event *probes_event(const struct probes *p, uint64_t id);

#endif
