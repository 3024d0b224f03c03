/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests to a recorder, in one place for both sides.  A line each way:
 *
 *	flush | mark NAME | pause | resume
 *	ready	(does it record already?)
 *	ok TIME-NS EVENTS FILE-BYTES	everything before the request is in so many bytes of the
 *file ended				the recording ended first; the file is whole error TEXT
 */
#ifndef CMD_SERVE_H
#define CMD_SERVE_H

#include "record/control.h"
#include "record/recorder.h"

/* The recorder's side, for control_open(); @recorder: struct recorder *, NULL before it works. */
void serve_request(void *recorder, const char *line, char answer[CONTROL_ANSWER]);

/* cmd/ask.c: "flush" to the recorder of @pid.  Return: 0, or a negative errno with @err. */
int ask_flush(pid_t pid, struct recorder_boundary *b, struct mp_err *err);

#endif
