/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by session.c, patch.c, close.c and the other files of a session. */
#ifndef INJECT_INTERNAL_H
#define INJECT_INTERNAL_H

#include "attach/emergency.h"
#include "inject/block/layout.h"
#include "inject/session.h"
#include "lib/check.h"

#define SLOT_BYTES     256 /* bytes of an island per hook: descriptor, entry code, relocated copy */
#define SLOT_ENTRY     64
#define SLOT_RELOCATED 112
#define ISLAND_BYTES   (16ull << 10)
#define JOURNAL_OFFSET 4096ull /* offset in the block */

/* Bytes of the private mapping after the agent's text: the gate and an account for each thread
 * slot. */
static inline uint64_t session_private_bytes(const struct ss_control *c)
{
	return SS_GATE_BYTES + c->nslots * sizeof(struct ss_account);
}

/* Plans the hooks of all modules in @maps; fails for a process without a known allocator.  Waits for
 * the allocator of a program that has just begun, and reads @maps anew then. */
__must_check int session_plan(struct session *s, struct maps *maps, struct mp_err *err);

/* Refuses a process whose memory another process shares, which would not stop with it.  Return: 0, or
 * -ENOTSUP with @err. */
__must_check int session_refuse_shared(const struct target *t, struct mp_err *err);

/* Deadline for stopping all threads: 2 s, and 1 ms for each thread.  It begins after
 * emergency_find(), which can take as long; if that finds nothing, remote_begin() reports it. */
static inline struct deadline session_stop_deadline(struct target *t)
{
	ignore_result(emergency_find(t));
	return deadline_in_ms(2000 + t->status.threads);
}

/* Stops all threads, and seizes them first unless they are seized already; each of the two steps
 * gets the time of session_stop_deadline().  Return: as target_stop(). */
__must_check int session_stop(struct target *t, struct mp_err *err);

/* Do the mappings belong to a process that has the session?  After execve() they do not. */
bool session_is_mapped(const struct session *s, const struct maps *maps);

/* mmap() in the target; if @addr is not 0, the mapping is made exactly there or fails (-EEXIST). */
__must_check int session_remote_map(struct remote *r, uint64_t addr, uint64_t length, int prot,
				    int flags, int fd, uint64_t *result);

/* Writes the recorder's journal to the block: all of it, or one hook that is about to be patched.
 * The counts and the state are written last, so that the block's journal is valid at any moment. */
void journal_publish(struct session *s);
void journal_publish_hook(struct session *s, uint32_t i, const struct ss_journal_hook *h);
/* Finds a function among the first @n names; if it is not among them, its name is written as number
 * @n, which becomes valid once a hook with it is published.  Return: its number; SS_MAX_NAMES if
 * there is no room. */
uint32_t journal_name(struct ss_journal *j, uint32_t n, const char *name, const char *module,
		      uint32_t kind);
void journal_set_state(struct session *s, enum ss_state state);
/* Reads the journal from the block, for a session of another recorder.  Return: 0, or -EPROTO if it
 * is damaged. */
__must_check int journal_load(struct session *s);

/* Is the hook's file still mapped at the same address? */
bool journal_hook_mapped(const struct maps *maps, const struct ss_journal_hook *h);
/* Marks a hook whose module was unloaded as not patched: there is nothing to restore. */
void journal_forget_hook(struct session *s, uint32_t i);

/* open.c: maps block, agent and gate into the stopped target.  On failure none of them remains, if
 * possible, and @s has no block. */
__must_check int session_map(struct session *s, const struct session_options *o,
			     struct layout *layout, struct mp_err *err);

/* unmap.c: unmaps whatever exists of islands, agent, gate and, last, the block.  @j: a copy that
 * the target cannot change.  Return: 0 or a negative errno. */
__must_check int session_unmap(struct remote *r, const struct ss_journal *j);

/* unmap.c: Return: a descriptor of a block that a killed recorder left open in the process, or -1.
 */
__must_check int session_leaked_fd(pid_t pid);
/* unmap.c: closes that descriptor, if there is one.  Return: 0 or a negative errno. */
__must_check int session_close_leaked(struct remote *r);

#endif
