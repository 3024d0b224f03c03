/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keeps memprof alive when the files that it reads shrink. */
#ifndef CMD_HEAP_SHRUNK_H
#define CMD_HEAP_SHRUNK_H

/* From now on, if a mapped file is truncated, the missing pages read as zeros instead of raising
 * SIGBUS. */
void survive_shrunk_files(void);

#endif
