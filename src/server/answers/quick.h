/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with what the index of a recording says, without reading its events: at once, however large it is. */
#ifndef SERVER_ANSWERS_QUICK_H
#define SERVER_ANSWERS_QUICK_H

#include "server/endpoint.h"

/* null: the recording has no index, or is of page faults. */
answer_write answer_quick;

#endif
