/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The signals that end a command which serves others. */
#ifndef LIB_ENDING_SIGNALS_H
#define LIB_ENDING_SIGNALS_H

/* Blocks SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP; ignores SIGPIPE.  To be called before there
 * are threads.  Return: a descriptor, owned by the caller, that can be read when one of them has come, or a
 * negative errno. */
int ending_signals(void);

#endif
