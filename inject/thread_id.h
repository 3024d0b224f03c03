/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INJECT_THREAD_ID_H
#define INJECT_THREAD_ID_H

#include "attach/target.h"
#include "formats/session.h"

/* Where glibc or musl keeps the id of each thread of the stopped @t, relative to the thread
 * pointer:
 * @c->tid_offset, believed (@c->tid_known) only when it is right for every thread. */
void thread_id_find(struct target *t, struct ss_control *c);

#endif
