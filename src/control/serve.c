/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_THINNING 12u /* allocations then represent 4096 at most */

static void set_answer(struct control_answer *answer, int ret, const char *good)
{
	if (ret == -ESHUTDOWN)
		snprintf(answer->text, sizeof(answer->text), "ended");
	else if (ret)
		snprintf(answer->text, sizeof(answer->text), "error %s", strerror(-ret));
	else
		snprintf(answer->text, sizeof(answer->text), "%s", good);
}

static void say_boundary(struct control_answer *answer, int ret, const struct recorder_boundary *b)
{
	char good[128];

	snprintf(good, sizeof(good), "ok %" PRIu64 " %" PRIu64 " %" PRIu64, ret ? 0 : b->time_ns,
		 ret ? 0 : b->events, ret ? 0 : b->file_bytes);
	set_answer(answer, ret, good);
}

static void serve_save(struct recorder *r, struct control_answer *answer)
{
	struct recorder_boundary b;
	int ret = recorder_save(r, &b);

	if (ret && ret != -ESHUTDOWN)
		snprintf(answer->text, sizeof(answer->text),
			 "error: the live heap could not be written: %s; recording continues",
			 strerror(-ret));
	else
		say_boundary(answer, ret, &b);
}

static void serve_view(struct recorder *r, uint32_t from, struct control_answer *answer)
{
	struct recorder_view v = {0};
	struct mp_err err = {0};
	int ret, copy;

	answer->fd = memfd_create("memprof-view", MFD_CLOEXEC);
	copy = answer->fd < 0 ? -1 : dup(answer->fd);
	ret = copy < 0 ? -errno : recorder_view(r, copy, from, &v, &err);
	if (!ret) {
		snprintf(answer->text, sizeof(answer->text), "ok %" PRIu64 " %" PRIu64 " %d %d %u",
			 v.time_ns, v.behind_ns, v.paused, v.thins, v.least);
		return;
	}
	if (answer->fd >= 0)
		close(answer->fd);
	answer->fd = -1;
	set_answer(answer, ret, "");
	if (ret != -ESHUTDOWN && err.what[0])
		snprintf(answer->text, sizeof(answer->text), "error %s", err.what);
}

void serve_request(void *recorder, const char *line, struct control_answer *answer)
{
	struct recorder *r = __atomic_load_n((struct recorder **)recorder, __ATOMIC_ACQUIRE);
	struct recorder_boundary b;
	unsigned int number;
	int ret;

	if (!r) {
		set_answer(answer, -EAGAIN, "");
	} else if (!strcmp(line, "flush") && recorder_is_live_only(r)) {
		serve_save(r, answer);
	} else if (!strcmp(line, "flush")) {
		say_boundary(answer, recorder_flush(r, &b), &b);
	} else if (!strncmp(line, "mark ", 5)) {
		ret = recorder_mark(r, line + 5);
		say_boundary(answer, ret ? ret : recorder_flush(r, &b), &b);
	} else if (!strcmp(line, "pause") || !strcmp(line, "resume")) {
		recorder_pause(r, *line == 'p');
		say_boundary(answer, recorder_flush(r, &b), &b);
	} else if (sscanf(line, "view %u", &number) == 1) {
		serve_view(r, number, answer);
	} else if (sscanf(line, "thin %u", &number) == 1 && number <= MOST_THINNING) {
		set_answer(answer, recorder_thin(r, number), "ok");
	} else if (!strcmp(line, "end")) {
		recorder_request_end(r);
		set_answer(answer, 0, "ok");
	} else if (!strcmp(line, "ready")) {
		set_answer(answer, 0, "ok");
	} else {
		set_answer(answer, 0, "error unknown request");
	}
}
