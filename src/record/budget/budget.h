/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --overhead: a closed loop that keeps what memprof costs under a share of the target's CPU time.
 * It changes the level of sampling (agent/countdown.h): 0 records every allocation, level n one of
 * 2^n requested bytes on average.  Pure functions: record/budget/cost.h measures, the reader calls.
 *
 * The costs of a step are of two kinds.  Those of recorded events fall with the level.  The others
 * do not: the hooks that every call passes through, and the recorder's work without events.  What
 * the share leaves to the former is spent.  What a burst took too much is saved in the
 * BUDGET_MEMORY_STEPS that follow.
 */
#ifndef RECORD_BUDGET_BUDGET_H
#define RECORD_BUDGET_BUDGET_H

#include <stdint.h>

#define BUDGET_STEP_NS	    100000000u /* how often the level is decided */
#define BUDGET_MEMORY_STEPS 100

/* What happened since the last step. */
struct budget_step {
	uint64_t target_ns;  /* CPU time of the target */
	uint64_t varying_ns; /* cost of the recorded events: CPU time in target and recorder */
	uint64_t fixed_ns;   /* other cost */
	uint64_t recorded;   /* events */
	uint64_t estimated;  /* events that they represent */
	uint64_t tracked;    /* recorded blocks that are live now ... */
	uint64_t room;	     /* ... and the most that the agent can know */
};

/* Sums over the last steps, with weights that fall with the age. */
struct budget_sums {
	double target, varying, fixed, recorded, estimated;
};

struct budget {
	double share; /* of the target's CPU time, at which it aims: a little less than asked for */
	uint32_t level;
	struct budget_sums last; /* about half a second */
	struct budget_sums past; /* BUDGET_MEMORY_STEPS */
	double debt_ns;		 /* spent more than the share allows; negative: less */
	uint64_t tracked;	 /* in the last step */
	uint32_t hold;		 /* steps in which the level does not fall */
	uint32_t caution;	 /* steps to hold after the next rise */
	uint32_t since_fall;	 /* steps since the level fell, unless it rose again */
};

/* Begins at a high level, from which it falls within seconds.  @ppm: the share, in millionths. */
void budget_begin(struct budget *b, uint32_t ppm);
/* Return: the level for the next step: 0, or SS_LEVEL_MIN to SS_LEVEL_MAX. */
uint32_t budget_decide(struct budget *b, const struct budget_step *s);
/* Forgets what was spent so far: it does not count. */
void budget_forget(struct budget *b);
/* Return: the cost in the last BUDGET_MEMORY_STEPS in millionths of the target's CPU time; UINT32_MAX:
 * more than 1000 times that. */
uint32_t budget_cost_ppm(const struct budget *b);

#endif
