/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who gets the orphans of a process: the nearest ancestor that has asked for them
 * (PR_SET_CHILD_SUBREAPER), else the first process of its pid namespace.  Which ancestors have
 * asked cannot be seen from outside.
 */
#ifndef ATTACH_REAPER_H
#define ATTACH_REAPER_H

#include "attach/target.h"

/*
 * Will an orphan of @t be waited for?  Yes, if the first process of its pid namespace is known,
 * cares about children (it handles, blocks or ignores SIGCHLD, or has waited for some), and neither
 * that process nor an ancestor of @t in the namespace has kept the zombie of an earlier copy
 * (attach/copy.h).  False also where that cannot be seen, and where @t is that first process.
 * Whether @t is a subreaper is not looked at.
 */
bool reaper_waits(const struct target *t);

#endif
