/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the recordings that the server serves. */
#ifndef SERVER_ANSWERS_LIST_H
#define SERVER_ANSWERS_LIST_H

#include "server/endpoint.h"

answer_write answer_list;

#endif
