/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with memprof's own sums and lists of a recording, which have the JSON of the command line. */
#ifndef SERVER_ANSWERS_SUMS_H
#define SERVER_ANSWERS_SUMS_H

#include "server/endpoint.h"

answer_write libraries_answer; /* export/sum_lists.h */
answer_write threads_answer;
answer_write sizes_answer;
answer_write samples_answer; /* of the process: export/timeline.h */
answer_write marks_answer;
answer_write losses_answer; /* export/json.h */
answer_write info_answer;   /* export/contents_list.h */

#endif
