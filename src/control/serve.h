/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The protocol for requests to a recorder, and the recorder's side of it (control/requests.h is the
 * client's).  A request is one line, and so is the answer.
 *
 * - flush, mark NAME, pause, resume: the requests that are answered with a position
 *
 * - view FROM: what is live and what was allocated so far, with the frames of the stacks from id FROM on
 *   (record/recorder.h).  Answered with "ok TIME-NS BEHIND-NS PAUSED THINS LEAST", as in struct
 *   recorder_view, and the descriptor of a file, or with an error.
 *
 * - thin LEAST: recorder_thin().  Answered with "ok" alone, or with an error.
 *
 * - end: end the recording and restore the process, as a signal does.  Answered with "ok" alone, at
 *   once, or with an error.
 *
 * - ready: is the recorder recording yet?  Answered with "ok" alone, or with an error.
 *
 * - ok TIME-NS EVENTS FILE-BYTES: answer; everything before the request is within the first
 *   FILE-BYTES bytes of the file
 *
 * - ended: answer; the recording ended before the request, and the file is complete
 *
 * - error TEXT: answer
 */
#ifndef CONTROL_SERVE_H
#define CONTROL_SERVE_H

#include "record/control.h"
#include "record/recorder.h"

/* Serves a request, as the callback for control_open().  @recorder: struct recorder **, which is
 * NULL before the recorder works. */
void serve_request(void *recorder, const char *line, struct control_answer *answer);

#endif
