/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef ATTACH_SECCOMP_H
#define ATTACH_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include "arch/arch.h"
#include "attach/target.h"

/*
 * Runs one filter of @n instructions over @data.
 * Return: its answer; SECCOMP_RET_KILL_PROCESS for a program the kernel would not have accepted.
 * Jumps go forward only, so it ends.
 */
uint32_t seccomp_run(const struct sock_filter *code, uint32_t n, const struct seccomp_data *data);

/*
 * What filters are shown of call @nr with @args (NULL: all 0), made at @insn_addr: of 32-bit
 * programs each argument's lower half (the kernel's syscall_get_arguments()).
 */
struct seccomp_data seccomp_call(const struct arch *arch, long nr, const uint64_t args[6],
				 uint64_t insn_addr);

/*
 * Would a filter of the stopped thread stop call @nr?  Filters that cannot be read are taken to,
 * unless the thread has no more of them than @t->filters_asked: as many as a thread had when they
 * were read and allowed all that is ever called.  A recorder gives up the privilege to read them,
 * and filters are never taken away.
 */
bool seccomp_forbids(struct target *t, struct thread *th, long nr, const uint64_t args[6]);

/* What becomes of a thread's system calls (prctl(2), PR_SET_SYSCALL_USER_DISPATCH). */
enum dispatch {
	DISPATCH_KERNEL, /* they are made; also where the kernel does not tell, before 6.4 */
	DISPATCH_BOTH,	 /* they are now; the thread itself changes that */
	DISPATCH_SIGNAL, /* the thread gets a signal instead, which kills it where it is blocked */
};

/* The thread is stopped. */
enum dispatch seccomp_dispatch(const struct target *t, const struct thread *th);

#endif
