/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include "lib/cpu_account.h"

struct start {
	void *(*run)(void *arg);
	void *arg;
	struct cpu_account *account; /* of the thread that starts it; NULL: none */
};

static void *run_accounted(void *arg)
{
	const struct start s = *(struct start *)arg;
	struct cpu_member m;
	void *ret;

	free(arg);
	if (!s.account)
		return s.run(s.arg);
	cpu_account_enter(s.account, &m);
	ret = s.run(s.arg);
	cpu_account_leave(s.account, &m);
	return ret;
}

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	sigset_t all, before;
	int ret;

	if (!s)
		return -ENOMEM;
	*s = (struct start){run, arg, cpu_account_mine()};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(thread, NULL, run_accounted, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		free(s);
	return -ret;
}
