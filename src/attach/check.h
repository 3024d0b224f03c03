/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Does a process still exist, and can memprof trace it? */
#ifndef ATTACH_CHECK_H
#define ATTACH_CHECK_H

#include "attach/target.h"

#define EXEC_MS 10 /* an execve() can hide a process for this long */

/* As proc_status_read().  In the middle of execve() a process looks as if it had ended or had no
 * memory: reads again for EXEC_MS. */
int check_status(pid_t pid, struct proc_status *st);
/* Has the process ended? */
bool check_ended(const struct proc_status *st);
/* Is a thread of the process alive?  All of them can have been replaced by one that called
 * execve(). */
bool check_alive(const struct target *t);
/* Return: kernel.yama.ptrace_scope, 0 without yama (admin-guide/LSM/Yama). */
int check_ptrace_scope(void);
/* Fills @err: @t has ended.  Return: -ESRCH. */
int check_over(const struct target *t, struct mp_err *err);
/* Fills @err: @t is traced by @tracer.  Return: -EBUSY. */
int check_traced(const struct target *t, pid_t tracer, struct mp_err *err);

#endif
