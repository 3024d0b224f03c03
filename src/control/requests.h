/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requests to the recorder of another process: the client's side of control/serve.h. */
#ifndef CONTROL_REQUESTS_H
#define CONTROL_REQUESTS_H

#include <stdbool.h>
#include <sys/types.h>
#include "formats/session.h"
#include "lib/err.h"
#include "record/recorder.h"

/* Reads control page and journal of the session in @pid from outside.  Return: false if there is
 * none that may be read. */
bool session_peek(pid_t pid, struct ss_control *c, struct ss_journal *j);
/* Is the recorder alive: does its pid have the start time that the journal has? */
bool recorder_lives(const struct ss_journal *j);
/* Is the recorder recording yet?  Asks it. */
bool recorder_is_ready(const struct ss_journal *j);

/**
 * request_send() - send a request to the recorder of @pid and wait for the answer
 * @line: the request, one line without a newline (control/serve.h)
 * @j: set to the session's journal
 * @b: set to the position that the recording reached
 *
 * Waits up to five seconds for a recorder that is still installing its hooks.
 * Return: 0, or a negative errno with @err (can be NULL).
 */
int request_send(pid_t pid, const char *line, struct ss_journal *j, struct recorder_boundary *b,
		 struct mp_err *err);

/* Asks the recorder of @pid to end the recording; does not wait for that.  @j: set to the session's
 * journal.  Return: 0, also if it was ending, or a negative errno with @err. */
int request_end(pid_t pid, struct ss_journal *j, struct mp_err *err);

/* Asks for a view of the recording of @pid; @from: as for recorder_view(); @j: set to the session's
 * journal.  Return: 0 with @v, and @fd for reading the view, which the caller closes; or a negative errno with
 * @err: -ESHUTDOWN: the recording has ended. */
int request_view(pid_t pid, uint32_t from, struct ss_journal *j, int *fd, struct recorder_view *v,
		 struct mp_err *err);
/* Has the recorder of @pid thin out frequent allocations; @least: as for recorder_thin().  Return: 0 or a
 * negative errno with @err. */
int request_thin(pid_t pid, uint32_t least, struct mp_err *err);

#endif
