/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Probe points of the kernel by tracefs (Documentation/trace/uprobetracer.rst).  Not by the PMU
 * "uprobe" of perf_event_open(2): its events cannot be inherited; a thread that has one can create
 * no further thread, since the kernel then reads the path from the wrong address space.
 */
#ifndef RECORD_TRACEFS_H
#define RECORD_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file system: a mount that nobody else sees, or where it is mounted.  Removes points
 * that dead recorders left.  Return: descriptor or a negative errno. */
int tracefs_open(void);
/**
 * tracefs_add() - define a probe point; it costs nothing until an event is opened for it
 * @number: names it, unique in this process
 * @path: absolute, without blanks; read now only
 * Return: its id for PERF_TYPE_TRACEPOINT, or a negative errno.
 */
int tracefs_add(int fs, uint32_t number, const char *path, uint64_t offset, bool at_return);
/* Removes the point; no event may be open for it. */
void tracefs_remove(int fs, uint32_t number);

#endif
