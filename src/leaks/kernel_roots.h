/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pointers of a process that only the kernel holds: epoll's user data, and sigev_value of timers.
 */
#ifndef LEAKS_KERNEL_ROOTS_H
#define LEAKS_KERNEL_ROOTS_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/vec.h"

struct kernel_roots {
	VEC(uint64_t) words;
};

/* Reads /proc/@pid/fdinfo and timers; finds none if the process is gone.  Return: 0 or -ENOMEM. */
int kernel_roots_read(struct kernel_roots *k, pid_t pid);

#endif
