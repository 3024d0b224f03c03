/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seizes threads of a process: all of them, or one. */
#include <errno.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include "attach/check.h"
#include "attach/emergency.h"
#include "attach/seize.h"
#include "attach/threads.h"
#include "lib/fault.h"
#include "lib/human.h"
#include "attach/steps.h"

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |     \
	 PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)

#define REFUSALS     20 /* for one thread, 1 ms apart */
#define SEIZE_ONE_MS 1000

/* Both lists are in order of creation, with few exceptions: the search starts at *@next. */
static bool is_known(struct target *t, pid_t tid, size_t *next)
{
	for (size_t n = 0; n < t->threads.n; n++) {
		size_t i = (*next + n) % t->threads.n;

		if (t->threads.at[i]->tid == tid) {
			*next = i + 1;
			return true;
		}
		if (n == 8)
			return thread_find(t, tid) != NULL;
	}
	return false;
}

/* Return: 0 when memprof traces the thread, -ESRCH if it has ended, -EAGAIN if it could not be
 * seized by the deadline, or another negative errno.  @waited: set to true if other threads
 * continued in the meantime. */
static int seize_one(struct target *t, pid_t tid, const struct deadline *deadline, bool *waited)
{
	struct proc_status st;

	for (int refused = 0;;) {
		int ret = seize_thread(t->pid, tid, OPTIONS);

		if (ret == -EINTR) {
			*waited = true;
			threads_catch_up(t);
			if (deadline_passed(deadline))
				return -EAGAIN;
			continue;
		}
		if (ret != -EPERM)
			return ret;
		/* The thread has ended, or is a new one that the kernel has seized already. */
		if (proc_status_read(t->pid, tid, &st) || st.state == 'Z' || st.state == 'X')
			return -ESRCH;
		if (st.tracer == gettid())
			return 0;
		/* Or it had ended, and the thread that called execve() has its number now; or a
		 * tracer has released it since.  target_look() found that memprof is permitted to
		 * trace the process. */
		if (st.tracer || refused++ == REFUSALS)
			return -EPERM;
		usleep(1000);
	}
}

static void note_filter(struct target *t, pid_t tid)
{
	struct proc_status st;

	if (!t->status.seccomp && !proc_status_read(t->pid, tid, &st))
		t->status.seccomp = st.seccomp;
}

static int seize_refused(struct target *t, int error, struct mp_err *err)
{
	if (error != -EAGAIN)
		return target_refused(t, error, err);
	return mp_fail(err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
		       "process %d is starting another program (execve), which did not end in "
		       "time; it was left alone",
		       t->pid);
}

int threads_seize_new(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	struct tids tids;
	size_t next = 0;
	bool fresh = false;
	int ret = proc_tasks(t->pid, &tids);

	if (ret)
		return target_refused(t, ret, err);
	for (size_t i = 0; i < tids.list.n && !ret; i++) {
		pid_t tid = tids.list.at[i];

		if (is_known(t, tid, &next))
			continue;
		ret = seize_one(t, tid, deadline, &fresh);
		if (ret == -ESRCH) {
			ret = 0;
			continue;
		}
		if (ret)
			seize_refused(t, ret, err);
		/* threads_catch_up() can have added it. */
		else if (!thread_find(t, tid) && !thread_add(t, tid))
			ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
		note_filter(t, tid);
		fresh = true;
		fault_point("seized");
	}
	vec_free(&tids.list);
	return ret ? ret : fresh;
}

bool threads_seize_more(const struct target *t, int fresh, const struct deadline *deadline)
{
	return fresh > 0 ||
	       (!fresh && !t->threads.n && check_alive(t) && !deadline_passed(deadline));
}

int target_seize(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	bool again = false;
	int fresh;

	/* Searching large files takes a while, so it is done before the threads are stopped.
	 * Missing code is detected and reported when it is needed. */
	ignore_result(emergency_find(t));
	t->exited = t->execed = false;
	do {
		threads_drop_gone(t);
		fresh = threads_seize_new(t, deadline, err);
		/* A slow first pass is not a fault of the process, so the deadline does not apply
		 * to it. */
		if (fresh > 0 && again && deadline_passed(deadline))
			fresh = mp_fail(err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
					"the threads of process %d could not be seized in time "
					"(does it create threads very fast?); it was left alone",
					t->pid);
		again = true;
	} while (threads_seize_more(t, fresh, deadline));
	if (fresh < 0) {
		target_release(t);
		return fresh;
	}
	if (!t->threads.n)
		return check_over(t, err);
	fault_point("all-seized");
	steps_add(t->steps, "seized %zu thread%s", t->threads.n, plural(t->threads.n));
	return 0;
}

/* Return: 0, -ESRCH if the thread cannot be seized now, or another negative errno. */
static int seize(struct target *t, pid_t tid)
{
	struct deadline deadline = deadline_in_ms(SEIZE_ONE_MS);
	struct proc_status st;
	bool waited = false;
	int ret;

	if (proc_status_read(t->pid, tid, &st) || (st.state != 'R' && st.state != 'S'))
		return -ESRCH;
	t->exited = t->execed = false;
	ret = seize_one(t, tid, &deadline, &waited);
	if (ret)
		return ret;
	note_filter(t, tid);
	return thread_add(t, tid) ? 0 : -ENOMEM;
}

static int seized_one(struct target *t, int seized, struct mp_err *err)
{
	t->some_only = !seized;
	if (seized == -ESRCH)
		return mp_fail(err, MP_EXIT_TIMEOUT, -EAGAIN,
			       "no thread of process %d can be stopped now; it was left alone",
			       t->pid);
	return seized ? seize_refused(t, seized, err) : 0;
}

int target_seize_thread(struct target *t, pid_t tid, struct mp_err *err)
{
	/* As in target_seize(). */
	ignore_result(emergency_find(t));
	return seized_one(t, seize(t, tid), err);
}

/* Seizes the main thread, unless it has ended or cannot be seized now; else the first thread that
 * can be. */
int target_seize_one(struct target *t, struct mp_err *err)
{
	struct tids tids;
	int ret = proc_tasks(t->pid, &tids), seized = -ESRCH;

	if (ret)
		return target_refused(t, ret, err);
	ignore_result(emergency_find(t));
	for (size_t i = 0; i < tids.list.n && seized == -ESRCH; i++)
		seized = seize(t, tids.list.at[i]);
	vec_free(&tids.list);
	return seized_one(t, seized, err);
}
