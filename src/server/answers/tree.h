/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the call tree of the allocations that pass the filter. */
#ifndef SERVER_ANSWERS_TREE_H
#define SERVER_ANSWERS_TREE_H

#include "server/endpoint.h"

answer_write answer_tree;

#endif
