/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers about a recording in progress, from what its recorder says (running.h). */
#ifndef SERVER_ANSWERS_LIVE_H
#define SERVER_ANSWERS_LIVE_H

#include "server/endpoint.h"
#include "server/running.h"

/* The sums of the last look; the looks so far; a table as that of memprof top; what report --json
 * says of the last look. */
answer_write live_write, live_timeline_write, live_groups_write, live_report_write;
extern const struct parameter live_groups_parameters[];

/* The sums of the last look as an event "look". */
running_event live_look_event;

#endif
