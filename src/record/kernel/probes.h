/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Kernel probes of one process by tracefs and perf_event_open: uprobes on entries and returns of
 * allocator functions, or page faults; one ring per processor. memprof writes nothing into the
 * process; the kernel inserts the breakpoints of the uprobes.
 *
 * Events are opened for all existing threads and inherited by new ones.  A thread that starts while
 * they are being opened can be covered twice: one sample of each pair is dropped.
 */
#ifndef RECORD_KERNEL_PROBES_H
#define RECORD_KERNEL_PROBES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "arch/arch.h"
#include "lib/err.h"

struct probe_point {
	const char *path; /* path of the mapped file, as memprof can open it */
	uint64_t offset;  /* of the function's first byte in the file */
	uint16_t hook;
	bool at_return;
	uint32_t stack_bytes; /* bytes of the user stack in each sample; multiple of 8 */
};

enum probe_kind { PROBE_ENTRY, PROBE_RETURN, PROBE_FAULT, PROBE_THREAD_EXIT, PROBE_LOST };

struct probe_sample {
	enum probe_kind kind;
	uint16_t hook;
	uint32_t tid;
	uint64_t time_ns;	    /* CLOCK_MONOTONIC */
	uint64_t regs[UW_MAX_REGS]; /* by column */
	uint32_t valid;		    /* bit i: regs[i] is known */
	/* Arguments at the function's entry, result at its return */
	uint64_t arg[ARCH_ARGS], result;
	const uint8_t *stack; /* from the stack pointer up */
	uint32_t stack_bytes;
	uint64_t lost;	     /* PROBE_LOST: number of samples that the kernel dropped */
	uint64_t addr;	     /* PROBE_FAULT: the accessed address */
	uint64_t page_bytes; /* size of the page that is now mapped; 0: not known */
	bool is_major;
};

struct probes;

/**
 * probes_open() - create the rings for samples of process @pid
 * @ring_bytes: size of the ring of each processor, a power of two; 0: 64 MiB, less on many
 * processors
 * Return: 0; or a negative errno with @err (MP_EXIT_PERMISSION: it names the permission needed;
 * MP_EXIT_KERNEL: it names what this kernel lacks).
 */
int probes_open(pid_t pid, const struct arch *arch, uint64_t ring_bytes, struct probes **p,
		struct mp_err *err);
/* Opens and enables probes.  Return: 0 or a negative errno with @err. */
int probes_add(struct probes *p, const struct probe_point *point, uint32_t n, struct mp_err *err);
/* Return: true if memprof is not permitted to see page faults inside system calls.  That takes
 * CAP_PERFMON, or kernel.perf_event_paranoid below 2. */
bool probes_user_only(pid_t pid);
/* Opens and enables events for all page faults of the process.  @user_only: except those inside
 * system calls.
 * Return: 0 or a negative errno with @err. */
int probes_add_faults(struct probes *p, uint32_t stack_bytes, bool user_only, struct mp_err *err);
/**
 * probes_drain() - deliver all samples up to about now, in order of time
 * @take: called for each sample, whose stack is valid during the call
 * @last: deliver everything, including samples from the last few milliseconds
 * Return: CLOCK_MONOTONIC ns up to which no sample is missing.
 */
uint64_t probes_drain(struct probes *p, void (*take)(void *ctx, const struct probe_sample *s),
		      void *ctx, bool last);
/* Waits until samples are available, at most @timeout_ms. */
void probes_wait(struct probes *p, int timeout_ms);
/* Removes all probes and frees @p, which can be NULL. */
void probes_close(struct probes *p);

#endif
