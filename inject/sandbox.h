/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sandboxed targets: what they forbid is found out before it is tried. */
#ifndef INJECT_SANDBOX_H
#define INJECT_SANDBOX_H

#include "attach/target.h"
#include "inject/session.h"
#include "lib/check.h"

/* From /proc, before any thread is stopped: strict mode, and filters that memprof may not read.
 * Return: 0, or a negative errno with @err (MP_EXIT_SECCOMP). */
__must_check int sandbox_look(const struct target *t, struct mp_err *err);

/**
 * sandbox_ask() - what the filters of every thread say of every call that will be made
 * @length: of the block; @agent: address of the agent, @agent_length: bytes of its text,
 * @private_length: bytes of the private mapping behind it
 * @agent_may: SS_MAY_*: the system calls that the agent itself may make
 *
 * The threads are stopped and not yet borrowed.
 * Return: 0, or a negative errno with @err: which call (MP_EXIT_SECCOMP).
 */
__must_check int sandbox_ask(struct target *t, uint64_t length, uint64_t agent,
			     uint64_t agent_length, uint64_t private_length, uint32_t *agent_may,
			     struct mp_err *err);

/* Whether the agent may make system calls: not where a thread is handed its own ones, now or as it
 * likes (PR_SET_SYSCALL_USER_DISPATCH).  All threads are stopped. */
bool sandbox_agent_calls(const struct target *t);

/**
 * sandbox_watch() - the agent makes no system calls any more once a thread has a seccomp filter
 * that is newer than the session
 *
 * Most are known before they are installed (agent/prctl_hook.c).  For those installed without
 * prctl() this looks at some threads of the running target, at others the next time.
 */
void sandbox_watch(struct session *s);

#endif
