/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the processes that a fleet records: those that run, and those that start.
 *
 * A process is looked at again and again, because it can execute another program or grow.  Everything is read from /proc;
 * no process is touched.
 */
#ifndef FLEET_PROCESSES_H
#define FLEET_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/vec.h"

struct pattern;

/* Which processes are wanted. */
struct process_filter {
	bool all; /* else only those of pid and name */
	VEC(pid_t) pid;
	VEC(const char *) name;	    /* as process_has_name() compares it */
	const struct pattern *comm; /* NULL: any.  This and what follows is for @all only */
	VEC(const char *) cgroup;   /* paths below the mount point; none: any */
	const char *container;	    /* the first digits of its id; NULL: any */
	uint64_t min_rss;	    /* bytes */
};

/* Why a process is not recorded. */
enum left_out {
	LEFT_OUT_NOT,	    /* it is wanted */
	LEFT_OUT_NO_MEMORY, /* of the kernel, or ending */
	LEFT_OUT_MEMPROF,
	LEFT_OUT_OTHER, /* neither its name nor its pid was given */
	LEFT_OUT_COMM,
	LEFT_OUT_CGROUP,
	LEFT_OUT_CONTAINER,
	LEFT_OUT_SMALL,
	LEFT_OUT_YOUNG,
	LEFT_OUT_INIT, /* of the machine: the kernel panics at its end */
	LEFT_OUT_PERMISSION,
	LEFT_OUT_TRACED,  /* by a debugger, or by another memprof that is attaching */
	LEFT_OUT_REFUSED, /* it was tried */
	LEFT_OUT_MOST,
	LEFT_OUT_REASONS
};

/* What the owner of the list does with a process that is wanted. */
enum process_use {
	PROCESS_UNUSED,
	PROCESS_USED,	 /* is recorded, or will be */
	PROCESS_REFUSED, /* cannot be recorded */
	PROCESS_RETRIED, /* cannot be recorded at the moment */
	PROCESS_LEFT	 /* was recorded, and is not any more */
};

struct process {
	pid_t pid;
	uint64_t start; /* field 22 of /proc/PID/stat */
	char name[17];
	enum left_out why;
	enum process_use use;
	uint64_t seen_ns, looked_ns; /* when it was found, and looked at */
	uint64_t refused_ns;
	uint32_t refusals;
	bool here; /* in the last scan */
};

struct processes {
	VEC(struct process) list; /* by pid */
};

/**
 * processes_scan() - update the list
 * @p: zeroed at first; freed by processes_free()
 * @most: processes that can be wanted at the same time
 * @now_ns: CLOCK_BOOTTIME
 *
 * Adds new processes, removes those that have ended, and decides again about each new one, and about each other one every ten
 * seconds.  A refused process whose name has changed, because it executed another program, becomes PROCESS_UNUSED.
 *
 * Return: 0 or a negative errno: /proc cannot be read.
 */
int processes_scan(struct processes *p, const struct process_filter *f, uint32_t most,
		   uint64_t now_ns);
/* The process cannot be recorded.  @at_the_moment: it is wanted again in a minute; three times at most.  Return: whether this is
 * the first refusal. */
bool process_refuse(struct process *p, bool at_the_moment);
void processes_free(struct processes *p);
/* Return: the process, or NULL. */
struct process *processes_find(const struct processes *p, pid_t pid);
/* Return: how many are left out for this reason. */
uint32_t processes_count(const struct processes *p, enum left_out why);
/* Return: the word for the value of a label, such as "min-rss". */
const char *left_out_word(enum left_out why);
/* Return: as in "3 smaller than --min-rss". */
const char *left_out_text(enum left_out why);

#endif
