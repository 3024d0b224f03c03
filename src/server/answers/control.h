/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requests to the recorder of a recording in progress, as memprof flush, mark, pause, resume and
 * detach send them. */
#ifndef SERVER_ANSWERS_CONTROL_H
#define SERVER_ANSWERS_CONTROL_H

#include "server/endpoint.h"

answer_write answer_flush, answer_mark, answer_pause, answer_resume, answer_detach;
extern const struct parameter control_mark_parameters[];

#endif
