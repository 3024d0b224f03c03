/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keeps a recording within its budget: measures the cost (cost.h), decides the level (budget.h), and
 * tells the agent and the other threads. */
#ifndef RECORD_BUDGET_OVERHEAD_H
#define RECORD_BUDGET_OVERHEAD_H

#include <stdbool.h>
#include "record/block_layout.h"
#include "record/budget/budget.h"
#include "record/budget/cost.h"
#include "record/shared.h"

/* The reader's; zero-initialized. */
struct overhead {
	struct cost cost;
	struct budget budget;
	uint64_t next_ns; /* of the next step; 0: of the first one */
	bool begun;	  /* the costs of attaching are over */
};

/* Begins with the session of @pid.  To be called before overhead_keep(). */
void overhead_begin(struct overhead *o, const struct block_layout *layout, pid_t pid);
/* Makes the next step if it is time.  Sets the agent's level in @block. */
void overhead_keep(struct overhead *o, struct ss_control *block, const struct block_layout *layout,
		   struct recorder_shared *shared);

#endif
