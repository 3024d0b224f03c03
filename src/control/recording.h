/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One recording, from installing the hooks to the closing summary. */
#ifndef CONTROL_RECORDING_H
#define CONTROL_RECORDING_H

#include <stdbool.h>
#include "attach/target.h"
#include "control/options.h"

/**
 * recording_run() - record a process until it ends or the recording is ended, and restore it
 * @t: after target_look(), or after target_launch() (@launched); stays the caller's
 *
 * Everything is reported through @o->notices, and to the follower if there is one.
 * Return: an enum mp_exit: MP_EXIT_OK, or that of the error that was reported.
 */
int recording_run(struct target *t, const struct recording_options *o, bool launched);

/**
 * recording_launch() - start a program, record it from its first instruction, and wait for it
 *
 * Return: the program's exit status, or 128 + the signal that ended it; as recording_run() if the
 * recording failed.
 */
int recording_launch(char *const argv[], const struct recording_options *o);

#endif
