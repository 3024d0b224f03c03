/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with memprof's own sums and lists of a recording, which have the JSON of the command line. */
#ifndef SERVER_ANSWERS_SUMS_H
#define SERVER_ANSWERS_SUMS_H

#include "server/endpoint.h"

answer_write answer_libraries; /* export/lists/sum_lists.h */
answer_write answer_threads;
answer_write answer_sizes;
answer_write answer_samples; /* of the process: export/lists/timeline.h */
answer_write answer_marks;
answer_write answer_losses; /* export/json.h */
answer_write answer_info;   /* export/lists/contents_list.h */

#endif
