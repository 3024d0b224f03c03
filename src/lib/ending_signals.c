/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/ending_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

/* nohup has a command survive the end of its terminal; a blocked signal is not ignored. */
static bool is_ignored(int signal)
{
	struct sigaction was;

	return !sigaction(signal, NULL, &was) && was.sa_handler == SIG_IGN;
}

int ending_signals(int other)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&set, SIGHUP);
	if (other)
		sigaddset(&set, other);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
