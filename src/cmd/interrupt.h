/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Signals that end memprof leaks and memprof heap.  They end memprof at once, whatever it is doing,
 * and leave the process as it was (snapshot/hand.h).
 */
#ifndef CMD_INTERRUPT_H
#define CMD_INTERRUPT_H

/**
 * interrupt_begin() - start a thread that waits for SIGINT, SIGTERM and the like
 * @status: exit status of memprof after such a signal, with one line on stderr
 * @overdue: exit status after SIGALRM, the end of the longest pause (snapshot/snapshot.h)
 */
void interrupt_begin(int status, int overdue);
/* Restores the signals' former actions.  May be called without interrupt_begin(). */
void interrupt_end(void);

#endif
