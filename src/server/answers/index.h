/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the server says of itself. */
#ifndef SERVER_ANSWERS_INDEX_H
#define SERVER_ANSWERS_INDEX_H

#include "server/endpoint.h"

answer_write answer_index, answer_openapi;

#endif
