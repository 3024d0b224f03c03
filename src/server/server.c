/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "server/http.h"
#include "server/loop.h"

/* Of a connection: a socket and a pipe. */
static void raise_files(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

static void on_signal(void *ctx)
{
	*(bool *)ctx = true;
}

/* nohup has the server survive the end of its terminal; a blocked signal is not ignored. */
static bool is_ignored(int signal)
{
	struct sigaction was;

	return !sigaction(signal, NULL, &was) && was.sa_handler == SIG_IGN;
}

/* Return: a descriptor that becomes readable when the server is to end, or a negative errno. */
static int ending_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int serve(struct http *h, struct loop *loop, const bool *end)
{
	int ret = 0, ms = http_run(h);

	while (!ret && !*end) {
		ret = loop_step(loop, ms);
		ms = http_run(h);
	}
	return ret;
}

int server_run(struct server *s, void (*ready)(const struct server *s), struct mp_err *err)
{
	bool end = false;
	struct loop_watch signals = {.ready = on_signal, .ctx = &end};
	struct http *http = NULL;
	struct loop loop;
	int ret = loop_open(&loop);

	raise_files();
	signals.fd = ret ? -1 : ending_signals();
	if (!ret)
		ret = signals.fd < 0 ? signals.fd : loop_add(&loop, &signals, EPOLLIN);
	if (ret) {
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start the server: %s", strerror(-ret));
	} else {
		ret = http_open(&loop, &s->recordings, &s->rules, &s->limits, &s->listener, &http,
				err);
		if (!ret) {
			ready(s);
			ret = serve(http, &loop, &end);
		}
	}
	http_close(http);
	if (signals.fd >= 0)
		close(signals.fd);
	loop_close(&loop);
	return ret;
}
