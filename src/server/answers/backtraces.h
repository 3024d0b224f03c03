/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with stacks: one, or all that match. */
#ifndef SERVER_ANSWERS_BACKTRACES_H
#define SERVER_ANSWERS_BACKTRACES_H

#include "server/endpoint.h"

answer_write answer_backtrace;
answer_write answer_backtraces;

#endif
