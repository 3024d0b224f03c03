/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The signals that end a command which serves others. */
#ifndef LIB_ENDING_SIGNALS_H
#define LIB_ENDING_SIGNALS_H

/* Blocks SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP; ignores SIGPIPE.  @other: one more signal to
 * block, 0: none.  To be called before there are threads.  Return: a signalfd, owned by the caller, that can be
 * read when one of them has come, or a negative errno. */
int ending_signals(int other);

#endif
