/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef ATTACH_PROC_PROCESS_NAME_H
#define ATTACH_PROC_PROCESS_NAME_H

#include <stdbool.h>
#include <sys/types.h>

/* Is @name the name of the process (/proc/PID/comm), or the last part of its argv[0] or of the path of its executable?  The
 * case of letters counts.  A zombie has no name. */
bool process_has_name(pid_t pid, const char *name);

#endif
