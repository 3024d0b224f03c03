/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Uprobes through tracefs (Documentation/trace/uprobetracer.rst).  The "uprobe" PMU of
 * perf_event_open(2) is not used because its events cannot be inherited: a thread that has one can
 * create no threads, since the kernel then reads the path from the wrong address space.
 */
#ifndef RECORD_KERNEL_TRACEFS_H
#define RECORD_KERNEL_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

/* Opens tracefs, by a private mount or where it is mounted, and removes probe points that dead
 * recorders left.  Return: a descriptor or a negative errno. */
int tracefs_open(void);
/* Can probe points be defined?  Changes nothing. */
bool tracefs_has_uprobes(void);
/**
 * tracefs_add() - define a probe point, which costs nothing until an event is opened for it
 * @number: set to a number for tracefs_remove(), which no other point of this process has
 * @path: absolute, without blanks; read only during the call
 * Return: its config value for PERF_TYPE_TRACEPOINT, or a negative errno.
 */
int tracefs_add(int fs, uint32_t *number, const char *path, uint64_t offset, bool at_return);
/* Removes the point.  No event must be open for it. */
void tracefs_remove(int fs, uint32_t number);

#endif
