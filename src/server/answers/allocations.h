/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with a list of single allocations. */
#ifndef SERVER_ANSWERS_ALLOCATIONS_H
#define SERVER_ANSWERS_ALLOCATIONS_H

#include "server/endpoint.h"

answer_write answer_allocations;

#endif
