/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keeps the aggregator's view of the process's code up to date: unwind tables, modules, code_ranges.h. */
#ifndef RECORD_STACKS_CODE_LOOK_H
#define RECORD_STACKS_CODE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct aggregator;
/* Takes the changes of the code up to now, and writes the modules that they need.  To be called after the events of a batch were
 * read from the rings and before they are processed. */
void code_look(struct aggregator *a);
/* Makes the changes up to @ticks effective, when aggregator.code is due. */
void code_reach(struct aggregator *a, uint64_t ticks);
/* Looks for new unwind tables after meeting code without one.  This is slow, and code that never
 * gets a table is met again and again, so at most a tenth of the time is spent on it.  Return: whether
 * any changed. */
bool code_update_tables(struct aggregator *a);

#endif
