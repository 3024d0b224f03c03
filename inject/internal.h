/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between session.c, patch.c and close.c. */
#ifndef INJECT_INTERNAL_H
#define INJECT_INTERNAL_H

#include "inject/session.h"

#define SLOT_BYTES     256 /* of an island per hook: descriptor, entry, relocated code */
#define SLOT_ENTRY     64
#define SLOT_RELOCATED 96
#define ISLAND_BYTES   (16ull << 10)

/* mmap in the target; @addr other than 0 is taken exactly or not at all (-EEXIST). */
int session_remote_map(struct remote *r, uint64_t addr, uint64_t length, int prot, int flags,
		       int fd, uint64_t *result);

/* The journal as we believe it goes to the block: all of it, or one hook that is about to be
 * patched; the block's counts and state come last, so that any moment is a valid one. */
void journal_publish(struct session *s);
void journal_publish_hook(struct session *s, uint32_t i);
void journal_set_state(struct session *s, enum ss_state state);
/* The other way, for a session that another recorder left.  Return: 0, or -EPROTO if it is
 * damaged. */
int journal_load(struct session *s);

#endif
