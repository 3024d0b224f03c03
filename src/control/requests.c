/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "inject/find.h"
#include "record/control.h"

#define READY_TRIES  100 /* five seconds */
#define READY_TRY_US 50000

bool session_peek(pid_t pid, struct ss_control *c, struct ss_journal *j)
{
	uint64_t addr;

	return session_read(pid, &addr, c, j) && session_is_of(j, pid, addr);
}

bool recorder_lives(const struct ss_journal *j)
{
	return j->recorder_pid > 0 && j->recorder_start &&
	       proc_start_time(j->recorder_pid) == j->recorder_start;
}

bool recorder_is_ready(const struct ss_journal *j)
{
	char answer[CONTROL_ANSWER];

	/* Without a socket the recorder cannot be asked. */
	return !j->control[0] ||
	       (!control_ask(j->control, j->recorder_pid, "ready", answer, NULL) &&
		!strcmp(answer, "ok"));
}

/* Sends @line to the recorder of @pid.  @passed: as for control_ask().  Return: 0 with @answer, or a
 * negative errno with @err. */
static int send_request(pid_t pid, const char *line, struct ss_journal *j,
			char answer[CONTROL_ANSWER], int *passed, struct mp_err *err)
{
	struct ss_control c;
	int ret;

	if (!session_peek(pid, &c, j)) {
		ret = session_refuse_recorder(pid, MP_EXIT_NO_SESSION, err);
		return ret ? ret
			   : mp_fail(err, MP_EXIT_NO_SESSION, -ENOENT,
				     "process %d has no memprof session, or none that you are "
				     "allowed to see",
				     pid);
	}
	if (!recorder_lives(j))
		return mp_fail(err, MP_EXIT_NO_SESSION, -ESRCH,
			       "the recorder of process %d is gone; run: memprof attach -p %d, or "
			       "memprof detach -p %d",
			       pid, pid, pid);
	/* The recorder might still be installing its hooks. */
	for (int i = 0; i < READY_TRIES && !recorder_is_ready(j); i++)
		usleep(READY_TRY_US);
	ret = control_ask(j->control, j->recorder_pid, line, answer, passed);
	switch (ret) {
	case 0:
		return 0;
	case -ECONNREFUSED:
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot connect to the recorder (pid %d): it is ending, or runs in "
			       "another network namespace",
			       j->recorder_pid);
	case -EPERM:
		return mp_fail(
		    err, MP_EXIT_PERMISSION, ret,
		    "the control socket belongs to another process, not to the recorder (pid %d)",
		    j->recorder_pid);
	case -EACCES:
		return mp_fail(
		    err, MP_EXIT_PERMISSION, ret,
		    "the recorder (pid %d) accepts requests only from its own user and root",
		    j->recorder_pid);
	case -ECONNRESET:
		strcpy(answer, "ended");
		return 0;
	}
	return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot ask the recorder (pid %d): %s",
		       j->recorder_pid, strerror(-ret));
}

/* Return: the error that the answer says, with @err. */
static int refused(const char *answer, const struct ss_journal *j, struct mp_err *err)
{
	if (!strcmp(answer, "ended"))
		return mp_fail(
		    err, MP_EXIT_NO_SESSION, -ESHUTDOWN,
		    "the recording ended before the request was carried out; it is complete: %s",
		    j->recording);
	return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the recorder reports: %s", answer);
}

int request_send(pid_t pid, const char *line, struct ss_journal *j, struct recorder_boundary *b,
		 struct mp_err *err)
{
	char answer[CONTROL_ANSWER];
	int ret = send_request(pid, line, j, answer, NULL, err);

	if (ret)
		return ret;
	return sscanf(answer, "ok %" SCNu64 " %" SCNu64 " %" SCNu64, &b->time_ns, &b->events,
		      &b->file_bytes) == 3
		   ? 0
		   : refused(answer, j, err);
}

int request_end(pid_t pid, struct ss_journal *j, struct mp_err *err)
{
	char answer[CONTROL_ANSWER];
	int ret = send_request(pid, "end", j, answer, NULL, err);

	return ret || !strcmp(answer, "ok") || !strcmp(answer, "ended") ? ret
									: refused(answer, j, err);
}

int request_thin(pid_t pid, uint32_t least, struct mp_err *err)
{
	char line[32], answer[CONTROL_ANSWER];
	struct ss_journal j;
	int ret;

	snprintf(line, sizeof(line), "thin %u", least);
	ret = send_request(pid, line, &j, answer, NULL, err);
	return ret || !strcmp(answer, "ok") ? ret : refused(answer, &j, err);
}

int request_view(pid_t pid, uint32_t from, struct ss_journal *j, int *fd, struct recorder_view *v,
		 struct mp_err *err)
{
	char line[32], answer[CONTROL_ANSWER];
	int ret, paused, thins;

	snprintf(line, sizeof(line), "view %u", from);
	ret = send_request(pid, line, j, answer, fd, err);
	if (ret)
		return ret;
	if (*fd >= 0 && sscanf(answer, "ok %" SCNu64 " %" SCNu64 " %d %d %u", &v->time_ns,
			       &v->behind_ns, &paused, &thins, &v->least) == 5) {
		v->paused = paused != 0;
		v->thins = thins != 0;
		return 0;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return refused(answer, j, err);
}
