/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers of /proc/PID/stat, under their field numbers in proc(5). */
#ifndef ATTACH_PROC_STAT_H
#define ATTACH_PROC_STAT_H

#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"

#define STAT_FLAGS	 9 /* PF_*, include/linux/sched.h */
#define STAT_MINFLT	 10
#define STAT_CMINFLT	 11
#define STAT_MAJFLT	 12
#define STAT_CMAJFLT	 13
#define STAT_START	 22 /* clock ticks after boot */
#define STAT_EXIT_SIGNAL 38
#define STAT_EXIT_CODE	 52
#define STAT_FIELDS	 53

struct proc_stat {
	char state;
	uint64_t field[STAT_FIELDS]; /* from the fourth field on */
};

/* Return: 0; -ESRCH: no such process; -EINVAL: fields are missing; or another -errno. */
__must_check int proc_stat_read(pid_t pid, struct proc_stat *st);

/* Return: milliseconds since the process began; execve() does not count as a beginning. */
uint64_t proc_stat_age_ms(const struct proc_stat *st);

#endif
