/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Signals that end memprof while it looks at a process (memprof leaks, heap): at once, with the
 * process as it was (leaks/hand.h), whatever memprof is in the middle of.
 */
#ifndef CMD_INTERRUPT_H
#define CMD_INTERRUPT_H

/**
 * interrupt_begin() - from here on a second thread waits for SIGINT, SIGTERM and their like
 * @status: what memprof then exits with, after one line on stderr
 * @overdue: the same for SIGALRM, the end of the longest pause (leaks/snapshot.h)
 */
void interrupt_begin(int status, int overdue);
/* Signals do again what they did before.  May be called without interrupt_begin(). */
void interrupt_end(void);

#endif
