/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers about a recording in progress, from what its recorder says (running.h). */
#ifndef SERVER_ANSWERS_LIVE_H
#define SERVER_ANSWERS_LIVE_H

#include "server/endpoint.h"
#include "server/running.h"

/* The sums of the last look; the looks so far; a table as that of memprof top; what report --json
 * says of the last look. */
answer_write answer_live, answer_live_timeline, answer_live_groups, answer_live_report;
extern const struct parameter live_groups_parameters[];

/* The sums of the last look as an event "look". */
running_event live_look_event;

#endif
