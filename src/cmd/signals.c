/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "lib/ending_signals.h"
#include "lib/open_files.h"

static int open_signals(void *unused)
{
	(void)unused;
	open_files_raise();	  /* reading symbols opens the files of all modules */
	signal(SIGXFSZ, SIG_IGN); /* then RLIMIT_FSIZE is an error like a full disk */
	return ending_signals(SIGUSR1);
}

static enum recording_order take_signal(void *unused, int fd)
{
	struct signalfd_siginfo si;

	(void)unused;
	if (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si) && si.ssi_signo == SIGUSR1)
		return ORDER_PAUSE_OR_RESUME;
	return ORDER_END;
}

static void close_signals(void *unused, int fd)
{
	(void)unused;
	close(fd);
}

const struct recording_orders *orders_by_signal(void)
{
	static const struct recording_orders orders = {
	    .begin = open_signals, .take = take_signal, .end = close_signals};

	return &orders;
}
