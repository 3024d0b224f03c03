/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* While a target is stopped every millisecond that memprof waits for a processor is the target's. */
#ifndef LIB_PRIORITY_H
#define LIB_PRIORITY_H

/* The calling thread comes first among ordinary ones, where that is permitted (CAP_SYS_NICE,
 * RLIMIT_NICE).  Return: its nice value before, for priority_restore(). */
int priority_raise(void);
void priority_restore(int nice_before);

#endif
