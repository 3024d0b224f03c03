/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reaper of a process's orphans: the nearest ancestor that has requested them
 * (PR_SET_CHILD_SUBREAPER), else the first process of its pid namespace.  Other processes cannot
 * see which ancestors are subreapers.
 */
#ifndef ATTACH_REAPER_H
#define ATTACH_REAPER_H

#include "attach/target.h"

/*
 * Will some process wait for an orphan of @t?  True if the first process of its pid namespace is
 * known and handles children (it catches, blocks or ignores SIGCHLD, or has waited for some), and
 * neither that process nor an ancestor of @t in the namespace still has the zombie of an earlier
 * copy (attach/copy.h).  False also if that cannot be determined, and if @t is that first process.
 * Does not check whether @t is a subreaper.
 */
bool reaper_waits(const struct target *t);

#endif
