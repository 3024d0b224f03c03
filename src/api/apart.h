/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs what stops a process in a thread of its own: it handles no signals of the caller's, which could interrupt
 * system calls, and has a stack of the usual size. */
#ifndef API_APART_H
#define API_APART_H

#include "lib/err.h"

/* Return: what @run returned, or a negative errno with @err if no thread could be started. */
int apart_run(int (*run)(void *arg), void *arg, struct mp_err *err);

#endif
