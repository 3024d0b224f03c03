/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the addresses of the stack of every allocation. */
#ifndef SERVER_ANSWERS_RAW_ALLOCATIONS_H
#define SERVER_ANSWERS_RAW_ALLOCATIONS_H

#include "server/endpoint.h"

answer_write answer_raw_allocations;

#endif
