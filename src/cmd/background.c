/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"
#include "cmd/cmd.h"
#include "control/follow.h"
#include "control/recording.h"
#include "control/requests.h"
#include "inject/family.h"

#define RETRY_US 10000

bool record_follows(const struct recording_options *o)
{
	return o->follow_fork || o->follow_exec;
}

int record(struct target *t, const struct recording_options *o)
{
	struct mp_err err = {0};
	bool follows = record_follows(o);

	if (!follows && !o->via_kernel && family_leave(t, &err))
		return complain(&err);
	return follows ? follow_run(t->pid, NULL, o) : recording_run(t, o, false);
}

void background_leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
}

bool background_wait(pid_t recorder, pid_t pid, bool follows, int *status)
{
	for (;;) {
		struct ss_control c;
		struct ss_journal j;
		int wait;

		if (waitpid(recorder, &wait, WNOHANG) == recorder) {
			*status = WIFEXITED(wait) ? WEXITSTATUS(wait) : MP_EXIT_FAILURE;
			return false;
		}
		if (session_peek(pid, &c, &j) && j.state == SS_LIVE &&
		    (j.recorder_pid == recorder || (follows && recorder_lives(&j))) &&
		    recorder_is_ready(&j))
			return true;
		usleep(RETRY_US);
	}
}
