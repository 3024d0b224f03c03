/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes to the memory of another process. */
#ifndef TEST_REMOTE_H
#define TEST_REMOTE_H

#include <stdbool.h>

struct remote_write {
	bool huge;    /* there was a huge page to write to */
	int writer;   /* wait status of the process that wrote */
	bool arrived; /* the other one has read what was written */
};

/*
 * One process writes by /proc/PID/mem into an executable huge page of another one.  Return: 0, or a
 * negative errno.  A kernel that fails kills the writer, and leaves the other process behind.
 */
int remote_write_huge(struct remote_write *out);

#endif
