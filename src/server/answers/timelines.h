/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the heap over time, in about 1000 buckets. */
#ifndef SERVER_ANSWERS_TIMELINES_H
#define SERVER_ANSWERS_TIMELINES_H

#include "server/endpoint.h"

answer_write answer_timeline;
answer_write answer_timeline_leaked;

#endif
