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

#endif
