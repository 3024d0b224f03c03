/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers that compare a recording with another one, or two of its moments: export/diff.h. */
#ifndef SERVER_ANSWERS_COMPARE_H
#define SERVER_ANSWERS_COMPARE_H

#include "server/endpoint.h"

extern const struct parameter diff_parameters[];

answer_write answer_diff;
answer_write answer_diff_flame;

#endif
