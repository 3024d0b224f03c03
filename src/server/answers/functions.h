/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers about functions and source lines, as text: export/peek.h, export/annotate.h. */
#ifndef SERVER_ANSWERS_FUNCTIONS_H
#define SERVER_ANSWERS_FUNCTIONS_H

#include "server/endpoint.h"

extern const struct parameter peek_parameters[], annotate_parameters[];

answer_write peek_answer;
answer_write annotate_answer;

#endif
