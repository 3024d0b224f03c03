/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof attach --push, --metrics, --all, and of several processes. */
#ifndef CMD_CONTINUOUS_H
#define CMD_CONTINUOUS_H

#include "cmd/options/continuous_options.h"

/* Records and pushes until it is told to end.  @c: after continuous_settle().  Return: the exit status after it printed
 * errors. */
int continuous_run(struct continuous_options *c, const struct recording_options *o);

#endif
