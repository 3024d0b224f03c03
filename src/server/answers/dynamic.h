/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the live blocks that C++ initializers of static variables allocated (initializers.h):
 * constants are those of clones for constant arguments, statics the others. */
#ifndef SERVER_ANSWERS_DYNAMIC_H
#define SERVER_ANSWERS_DYNAMIC_H

#include "server/endpoint.h"

answer_write answer_dynamic_constants;
answer_write answer_dynamic_statics;
answer_write answer_dynamic_constants_ascii_tree;
answer_write answer_dynamic_statics_ascii_tree;

#endif
