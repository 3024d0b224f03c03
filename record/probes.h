/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's own way in: uprobes on the entries and returns of allocator functions of one
 * process, by tracefs and perf_event_open, or its page faults; one ring for each processor.
 * Nothing is written into the process by us; the kernel puts its breakpoints where uprobes are.
 *
 * All threads that exist are covered, and later ones by inheritance.  While the events are being
 * opened a thread may be covered twice: one sample of each pair is dropped.
 */
#ifndef RECORD_PROBES_H
#define RECORD_PROBES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "arch/arch.h"
#include "lib/err.h"

struct probe_point {
	const char *path; /* the file that is mapped, as we can open it */
	uint64_t offset;  /* of the function's first byte in the file */
	uint16_t hook;
	bool at_return;
	uint32_t stack_bytes; /* of the user stack that come with a sample; multiple of 8 */
};

enum probe_kind { PROBE_ENTRY, PROBE_RETURN, PROBE_FAULT, PROBE_THREAD_EXIT, PROBE_LOST };

struct probe_sample {
	enum probe_kind kind;
	uint16_t hook;
	uint32_t tid;
	uint64_t time_ns;		 /* CLOCK_MONOTONIC */
	uint64_t regs[UW_MAX_REGS];	 /* by column */
	uint32_t valid;			 /* bit i: regs[i] is known */
	uint64_t arg[ARCH_ARGS], result; /* of the function at its entry, at its return */
	const uint8_t *stack;		 /* from the stack pointer up */
	uint32_t stack_bytes;
	uint64_t lost;	     /* PROBE_LOST: samples the kernel had no room for */
	uint64_t addr;	     /* PROBE_FAULT: what was touched */
	uint64_t page_bytes; /* of the page that is there now; 0: not told */
	bool is_major;
};

struct probes;

/**
 * probes_open() - rings for the samples of process @pid
 * @ring_bytes: of each processor, a power of two; 0: 64 MiB, less on many processors
 * Return: 0; or a negative errno with @err (MP_EXIT_PERMISSION: and what would help;
 * MP_EXIT_KERNEL: what this kernel lacks).
 */
int probes_open(pid_t pid, const struct arch *arch, uint64_t ring_bytes, struct probes **p,
		struct mp_err *err);
/* Puts probes in; they fire from then on.  Return: 0 or a negative errno with @err. */
int probes_add(struct probes *p, const struct probe_point *point, uint32_t n, struct mp_err *err);
/* Are faults that system calls make out of our sight?  The kernel tells of those to CAP_PERFMON, or
 * when kernel.perf_event_paranoid is below 2. */
bool probes_user_only(pid_t pid);
/* All page faults of the process from now on.  @user_only: but those that system calls make.
 * Return: 0 or a negative errno with @err. */
int probes_add_faults(struct probes *p, uint32_t stack_bytes, bool user_only, struct mp_err *err);
/**
 * probes_drain() - all samples up to about now, in order of time
 * @take: called for each; the sample's stack is valid during the call
 * Return: CLOCK_MONOTONIC ns up to which no sample is missing.
 */
uint64_t probes_drain(struct probes *p, void (*take)(void *ctx, const struct probe_sample *s),
		      void *ctx, bool last);
/* Waits until samples are there, at most @timeout_ms. */
void probes_wait(struct probes *p, int timeout_ms);
void probes_close(struct probes *p);

#endif
