/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The answer about what grows: each site with its live bytes over time and their shape (model/sums/shape.h). */
#ifndef SERVER_ANSWERS_GROWTH_H
#define SERVER_ANSWERS_GROWTH_H

#include "server/endpoint.h"

extern const struct parameter growth_parameters[];

/* Sorted by growth per minute, in the second half of the recording, highest first. */
answer_write answer_growth;

#endif
