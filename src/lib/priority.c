/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/priority.h"

void priority_raise(struct priority *old)
{
	struct sched_param first = {.sched_priority = 1};

	old->policy = sched_getscheduler(0);
	sched_getparam(0, &old->param);
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

void priority_restore(const struct priority *old)
{
	sched_setscheduler(0, old->policy, &old->param);
}
