/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the allocations that pass the filter, by stack. */
#ifndef SERVER_ANSWERS_GROUPS_H
#define SERVER_ANSWERS_GROUPS_H

#include "server/endpoint.h"

answer_write answer_groups;

#endif
