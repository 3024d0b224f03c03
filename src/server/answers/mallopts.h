/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the calls of mallopt(). */
#ifndef SERVER_ANSWERS_MALLOPTS_H
#define SERVER_ANSWERS_MALLOPTS_H

#include "server/endpoint.h"

answer_write answer_mallopts;

#endif
