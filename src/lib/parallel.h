/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work that is done in two parts at the same time, if this process may use two processors. */
#ifndef LIB_PARALLEL_H
#define LIB_PARALLEL_H

#define MIN_PARALLEL 100000u /* blocks, or the like: with fewer, a thread gains nothing */

/* Return: the number of processors that this process may use, by sched_getaffinity(). */
unsigned int parallel_processors(void);
/* Return: 1 or 2, as many as there are processors for. */
unsigned int parallel_parts(void);
/**
 * parallel_run() - call a function for each part of some work
 * @parts: from parallel_parts()
 * @work: called with @part 0 to @parts - 1, at the same time; its threads handle no signals.
 * Returns when all have.  If no thread can be made, the parts are done one after the other.
 */
void parallel_run(unsigned int parts, void (*work)(void *arg, unsigned int part), void *arg);

#endif
