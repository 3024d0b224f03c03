/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between session.c, patch.c and close.c. */
#ifndef INJECT_INTERNAL_H
#define INJECT_INTERNAL_H

#include "attach/emergency.h"
#include "inject/layout.h"
#include "inject/session.h"
#include "lib/check.h"

#define SLOT_BYTES     256 /* of an island per hook: descriptor, entry, relocated code */
#define SLOT_ENTRY     64
#define SLOT_RELOCATED 112
#define ISLAND_BYTES   (16ull << 10)
#define JOURNAL_OFFSET 4096ull /* in the block */

/* The private mapping behind the agent's text: the gate and an account for each slot. */
static inline uint64_t session_private_bytes(const struct ss_control *c)
{
	return SS_GATE_BYTES + c->nslots * sizeof(struct ss_account);
}

/* Plans the hooks of all modules in @maps; refuses a process without an allocator. */
__must_check int session_plan(struct session *s, const struct maps *maps, struct mp_err *err);

/* For all threads to stand: 2 s, and 1 ms for each, after the search that may take as long.  What
 * it does not find is told by remote_begin(). */
static inline struct deadline session_stop_deadline(struct target *t)
{
	ignore_result(emergency_find(t));
	return deadline_in_ms(2000 + t->status.threads);
}

/* Stops all threads, which are seized before unless that was done; each of the two has that time.
 * Return: as target_stop(). */
__must_check int session_stop(struct target *t, struct mp_err *err);

/* Are the mappings of a process with the session?  Not after execve(). */
bool session_is_mapped(const struct session *s, const struct maps *maps);

/* mmap in the target; @addr other than 0 is taken exactly or not at all (-EEXIST). */
__must_check int session_remote_map(struct remote *r, uint64_t addr, uint64_t length, int prot,
				    int flags, int fd, uint64_t *result);

/* The journal as we believe it goes to the block: all of it, or one hook that is about to be
 * patched; the block's counts and state come last, so that any moment is a valid one. */
void journal_publish(struct session *s);
void journal_publish_hook(struct session *s, uint32_t i, const struct ss_journal_hook *h);
/* The number of a function among the first @n names.  @n: it was not among them, and is written
 * behind them; it counts once a hook that has it is published.  Return: SS_MAX_NAMES: no room. */
uint32_t journal_name(struct ss_journal *j, uint32_t n, const char *name, const char *module,
		      uint32_t kind);
void journal_set_state(struct session *s, enum ss_state state);
/* The other way, for a session that another recorder left.  Return: 0, or -EPROTO if it is
 * damaged. */
__must_check int journal_load(struct session *s);

/* Is the hook's file still mapped where it was? */
bool journal_hook_mapped(const struct maps *maps, const struct ss_journal_hook *h);
/* Its module was unloaded: there is nothing to restore. */
void journal_forget_hook(struct session *s, uint32_t i);

/* open.c: maps block, agent and gate into the stopped target.  On failure nothing of them is left,
 * and @s has no block. */
__must_check int session_map(struct session *s, const struct session_options *o,
			     struct layout *layout, struct mp_err *err);

/* unmap.c: unmaps islands, agent, gate and, last, the block; whatever of them is there.
 * @j: a copy that the target cannot change.  Return: 0 or a negative errno. */
__must_check int session_unmap(struct remote *r, const struct ss_journal *j);

/* unmap.c: a block's descriptor that a killed recorder left open in the process, or -1. */
__must_check int session_leaked_fd(pid_t pid);
/* unmap.c: closes it, if there is one.  Return: 0 or a negative errno. */
__must_check int session_close_leaked(struct remote *r);

#endif
