/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/priority.h"

#include <errno.h>
#include <sys/resource.h>

#define RAISED (-15)

int priority_raise(void)
{
	int before;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	if (errno)
		before = 0;
	/* Of a thread in Linux, not of the process.  Refused: it stays as it is. */
	if (before > RAISED)
		(void)setpriority(PRIO_PROCESS, 0, RAISED);
	return before;
}

void priority_restore(int nice_before)
{
	(void)setpriority(PRIO_PROCESS, 0, nice_before);
}
