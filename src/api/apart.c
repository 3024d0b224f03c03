/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/apart.h"

#include <string.h>
#include "attach/target.h"
#include "lib/thread.h"

struct apart {
	pid_t pid;
	int (*run)(struct target *t, void *arg, struct mp_err *err);
	void *arg;
	struct mp_err *err;
	int ret;
};

static void *run_apart(void *arg)
{
	struct apart *a = arg;
	struct target t;

	a->ret = target_look(&t, a->pid, a->err);
	if (a->ret)
		return NULL;
	a->ret = a->run(&t, a->arg, a->err);
	target_close(&t);
	return NULL;
}

int apart_run(pid_t pid, int (*run)(struct target *t, void *arg, struct mp_err *err), void *arg,
	      struct mp_err *err)
{
	struct apart a = {.pid = pid, .run = run, .arg = arg, .err = err};
	pthread_t thread;
	int ret = thread_start(&thread, run_apart, &a);

	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s",
			       strerror(-ret));
	pthread_join(thread, NULL);
	return a.ret;
}
