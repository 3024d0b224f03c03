/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers with the address ranges of the allocations that pass the filter. */
#ifndef SERVER_ANSWERS_REGIONS_H
#define SERVER_ANSWERS_REGIONS_H

#include "server/endpoint.h"

answer_write answer_regions;

#endif
