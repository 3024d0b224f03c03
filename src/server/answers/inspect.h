/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inspects the process of a recording in progress, by POST, as the commands of memprof do, and answers with their JSON.
 * The process is stopped for a moment; it is refused (409) if the command refuses it.
 */
#ifndef SERVER_ANSWERS_INSPECT_H
#define SERVER_ANSWERS_INSPECT_H

#include "server/endpoint.h"

answer_write answer_leaks;    /* memprof leaks; without contents of blocks */
answer_write answer_retained; /* memprof heap --retained */

#endif
