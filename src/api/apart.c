/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "api/apart.h"

#include <string.h>
#include "lib/thread.h"

struct apart {
	int (*run)(void *arg);
	void *arg;
	int ret;
};

static void *call(void *arg)
{
	struct apart *a = arg;

	a->ret = a->run(a->arg);
	return NULL;
}

int apart_run(int (*run)(void *arg), void *arg, struct mp_err *err)
{
	struct apart a = {run, arg, 0};
	pthread_t thread;
	int ret = thread_start(&thread, call, &a);

	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s",
			       strerror(-ret));
	pthread_join(thread, NULL);
	return a.ret;
}
