/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread's alternate signal stack (sigaltstack(2)).  The program need not keep its address: the
 * kernel has it, and reports it only to the thread itself.
 */
#ifndef ATTACH_SIGNAL_STACK_H
#define ATTACH_SIGNAL_STACK_H

#include "attach/target.h"

/* The smallest that the kernel accepts (MINSIGSTKSZ), on any architecture. */
#define SIGNAL_STACK_LEAST 2048

/**
 * signal_stack_read() - have a thread call sigaltstack(NULL, ...)
 * @t: all its threads, or @th alone (target_seize_thread()), are stopped
 * @maps: mappings of @t, read after @th was created
 * @start: set to the address of the signal stack; 0: @th has none
 * Return: 0; -EBUSY: as remote_begin_in(); or another negative errno (-EACCES: a seccomp filter).
 */
__must_check int signal_stack_read(struct target *t, struct thread *th, const struct maps *maps,
				   uint64_t *start);

#endif
