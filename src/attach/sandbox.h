/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sandboxed targets: determines what their filters forbid before it is tried. */
#ifndef ATTACH_SANDBOX_H
#define ATTACH_SANDBOX_H

#include "attach/target.h"
#include "lib/check.h"

/* Checks /proc before any thread is stopped: strict mode, and filters that memprof is not permitted
 * to read.  Return: 0, or a negative errno with @err (MP_EXIT_SECCOMP). */
__must_check int sandbox_look(const struct target *t, struct mp_err *err);

/**
 * sandbox_ask() - check every call that will be made against the filters of every thread
 * @length: of the block; @agent: address of the agent, @agent_length: bytes of its text,
 *	@private_length: bytes of the private mapping after it
 * @agent_may: set to SS_MAY_*: the system calls that the agent itself may make
 *
 * The threads must be stopped, and none be the carrier yet.
 * Return: 0, or a negative errno with @err, which has the forbidden call (MP_EXIT_SECCOMP).
 */
__must_check int sandbox_ask(struct target *t, uint64_t length, uint64_t agent,
			     uint64_t agent_length, uint64_t private_length, uint32_t *agent_may,
			     struct mp_err *err);

/* May the agent make system calls?  False if a thread handles its own system calls, now or at times
 * (PR_SET_SYSCALL_USER_DISPATCH).  All threads must be stopped. */
bool sandbox_agent_calls(const struct target *t);

/* Does a thread have a seccomp filter that is newer than sandbox_ask()?  Each call checks some threads
 * of the running target, the next call others.  @looked_at: number of threads checked so far. */
bool sandbox_has_grown(const struct target *t, uint32_t *looked_at);

#endif
