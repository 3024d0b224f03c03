/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void write_answer(char answer[CONTROL_ANSWER], int ret, const struct recorder_boundary *b)
{
	if (ret == -ESHUTDOWN)
		snprintf(answer, CONTROL_ANSWER, "ended");
	else if (ret)
		snprintf(answer, CONTROL_ANSWER, "error %s", strerror(-ret));
	else
		snprintf(answer, CONTROL_ANSWER, "ok %llu %llu %llu",
			 (unsigned long long)b->time_ns, (unsigned long long)b->events,
			 (unsigned long long)b->file_bytes);
}

void serve_request(void *recorder, const char *line, char answer[CONTROL_ANSWER])
{
	struct recorder *r = __atomic_load_n((struct recorder **)recorder, __ATOMIC_ACQUIRE);
	struct recorder_boundary b;
	int ret;

	if (!r)
		write_answer(answer, -EAGAIN, NULL);
	else if (!strcmp(line, "flush")) {
		write_answer(answer, recorder_flush(r, &b), &b);
	} else if (!strncmp(line, "mark ", 5)) {
		ret = recorder_mark(r, line + 5);
		write_answer(answer, ret ? ret : recorder_flush(r, &b), &b);
	} else if (!strcmp(line, "pause") || !strcmp(line, "resume")) {
		recorder_pause(r, *line == 'p');
		write_answer(answer, recorder_flush(r, &b), &b);
	} else if (!strcmp(line, "end")) {
		recorder_request_end(r);
		snprintf(answer, CONTROL_ANSWER, "ok");
	} else if (!strcmp(line, "ready")) {
		snprintf(answer, CONTROL_ANSWER, "ok");
	} else {
		snprintf(answer, CONTROL_ANSWER, "error unknown request");
	}
}
