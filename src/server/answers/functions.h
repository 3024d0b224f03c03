/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers about functions and source lines, as text: export/text/peek.h, export/text/annotate.h. */
#ifndef SERVER_ANSWERS_FUNCTIONS_H
#define SERVER_ANSWERS_FUNCTIONS_H

#include "server/endpoint.h"

extern const struct parameter peek_parameters[], annotate_parameters[];

answer_write answer_peek;
answer_write answer_annotate;

#endif
