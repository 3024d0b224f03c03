/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which session a process has, and whether it is its own: a recorder and forked children map the block,
 * too. */
#ifndef INJECT_FIND_H
#define INJECT_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/mem.h"
#include "attach/proc/maps.h"
#include "formats/session.h"
#include "lib/check.h"
#include "lib/err.h"

/* Is it the path of a mapping of a session block? */
bool session_is_path(const char *path);

/* Return: address of the session block in the process; 0: none. */
uint64_t session_find(const struct maps *maps, uint64_t *length);

/**
 * session_read() - read the session block in @pid's memory
 * @addr: set to the address of the block
 * @c, @j: set to its head and journal; texts are terminated, other content is not trusted
 *
 * Return: true; false if there is no block, reading is not permitted, or it is of another version.
 */
bool session_read(pid_t pid, uint64_t *addr, struct ss_control *c, struct ss_journal *j);

/* Is the session with this journal, found at @addr in @pid, that of @pid or of its parent by fork?
 * A recorder has the block in its own memory, too. */
bool session_is_of(const struct ss_journal *j, pid_t pid, uint64_t addr);

/* Identity of a session block: forked children map the same file. */
struct session_id {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
};

/* Return: whether @pid maps a session block (that memprof is permitted to see), with @id filled. */
bool session_id_of(pid_t pid, struct session_id *id);
bool session_id_equal(const struct session_id *a, const struct session_id *b);

/* Is @pid the recorder of the session that it maps? */
bool session_is_recorder(pid_t pid);

/**
 * session_refuse_recorder() - refuse @pid if it is the recorder of a session, which maps the block
 * too
 * @exit: exit status for @err
 * Return: -EINVAL with @err, which has the recorded process if that is visible; 0: not a recorder.
 */
__must_check int session_refuse_recorder(pid_t pid, enum mp_exit exit, struct mp_err *err);

/* Was the process forked while it was recorded?  False also for a vfork child, which shares its
 * parent's memory until it calls exec. */
bool session_is_forked(pid_t pid);
/* The same, with the journal and the address of the session block that were read. */
bool session_forked(const struct mem *mem, pid_t pid, uint64_t addr, const struct ss_journal *j);

#endif
