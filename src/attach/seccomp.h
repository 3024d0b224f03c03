/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef ATTACH_SECCOMP_H
#define ATTACH_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include "arch/arch.h"
#include "attach/target.h"

/*
 * Runs one filter of @n instructions over @data.  It terminates, since jumps only go forward.
 * Return: its verdict; SECCOMP_RET_KILL_PROCESS for a program that the kernel would not have
 * accepted.
 */
uint32_t seccomp_run(const struct sock_filter *code, uint32_t n, const struct seccomp_data *data);

/*
 * What filters are shown of call @nr with @args (NULL: all 0), made at @insn_addr.  For 32-bit
 * programs that is the lower half of each argument (the kernel's syscall_get_arguments()).
 */
struct seccomp_data seccomp_call(const struct arch *arch, long nr, const uint64_t args[6],
				 uint64_t insn_addr);

/*
 * Would a filter of the stopped thread reject call @nr?  Filters that cannot be read are assumed
 * to, unless the thread has no more of them than @t->filters_asked: the number of filters that a
 * thread had when they were read and found to allow every call that memprof ever injects.  This
 * works because a recorder drops the privilege to read filters, and filters are never removed.
 */
bool seccomp_forbids(struct target *t, struct thread *th, long nr, const uint64_t args[6]);

/* How a thread's system calls are handled (prctl(2), PR_SET_SYSCALL_USER_DISPATCH). */
enum dispatch {
	DISPATCH_KERNEL, /* the kernel executes them; also if it does not report it (before 6.4) */
	DISPATCH_BOTH,	 /* the kernel executes them now, but the thread can change that */
	DISPATCH_SIGNAL, /* the thread gets a signal instead; if that is blocked, it dies */
};

/* @th must be stopped. */
enum dispatch seccomp_dispatch(const struct target *t, const struct thread *th);

#endif
