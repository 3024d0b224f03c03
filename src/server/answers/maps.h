/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The answers about mappings (map_list.h), and about the memory of the process over time. */
#ifndef SERVER_ANSWERS_MAPS_H
#define SERVER_ANSWERS_MAPS_H

#include "server/endpoint.h"

extern const struct parameter maps_parameters[];

answer_write answer_maps;
answer_write answer_timeline_maps;

#endif
