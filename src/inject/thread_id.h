/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_THREAD_ID_H
#define INJECT_THREAD_ID_H

#include "attach/target.h"
#include "formats/session.h"

/* Finds where glibc or musl keeps the id of each thread of the stopped @t, relative to the thread
 * pointer.  @c->tid_offset is trusted (@c->tid_known) only if it is right for every thread. */
void thread_id_find(struct target *t, struct ss_control *c);

#endif
