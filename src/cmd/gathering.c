/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/gathering.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "lib/ending_signals.h"
#include "lib/open_files.h"
#include "lib/printable.h"
#include "stream/beacon.h"
#include "stream/endpoint.h"

static void print_stored(const void *ctx, const struct stored *file, const char *what)
{
	const struct gathering *g = ctx;

	if (!g->o->quiet)
		printf("%s: %s\n", printable(file->name), what);
	fflush(stdout);
}

static void begun(void *ctx, const struct stored *file, const char *from)
{
	char what[128];

	snprintf(what, sizeof(what), "begun, from %s", from);
	print_stored(ctx, file, what);
}

static void continued(void *ctx, const struct stored *file, const char *from)
{
	char what[160];

	snprintf(what, sizeof(what), "continued at %llu bytes, from %s",
		 (unsigned long long)file->bytes, from);
	print_stored(ctx, file, what);
}

static void lost(void *ctx, const struct stored *file, const char *why)
{
	char what[320];

	snprintf(what, sizeof(what), "connection lost at %llu bytes: %.200s",
		 (unsigned long long)file->bytes, printable(why));
	print_stored(ctx, file, what);
}

static void complete(void *ctx, const struct stored *file)
{
	char what[64];

	snprintf(what, sizeof(what), "complete, %llu bytes", (unsigned long long)file->bytes);
	print_stored(ctx, file, what);
}

static void cancelled(void *ctx, const struct stored *file)
{
	print_stored(ctx, file, "cancelled by the sender; removed");
}

static void refused(void *ctx, const char *from, const char *why)
{
	(void)ctx;
	fprintf(stderr, "memprof: %s refused: %s\n", from, printable(why));
}

/* Opens what gather_run() listens at.  Return: 0, or a negative errno with @err. */
static int open_sockets(struct gathering *g, struct mp_err *err)
{
	const struct gathering_options *o = g->o;
	struct gather_config *c = &g->config;
	char port[8];

	if (o->find) {
		c->beacons = beacon_listen();
		if (c->beacons < 0)
			return mp_fail(err, MP_EXIT_FAILURE, c->beacons,
				       "cannot listen at UDP port %u: %s", BEACON_PORT,
				       strerror(-c->beacons));
	}
	if (o->find && !o->listen)
		return 0;
	snprintf(port, sizeof(port), "%u", ENDPOINT_PORT);
	return endpoint_listen(o->listen ? o->listen : port, &c->listener, g->at, err);
}

static void announce(const struct gathering *g)
{
	if (g->config.beacons >= 0)
		printf("finds senders that announce themselves\n");
	if (g->config.listener >= 0)
		printf("listening at %s\n", g->at);
	fflush(stdout);
}

int gathering_open(const struct gathering_options *o, struct gathering *g)
{
	struct mp_err err = {0};
	int ret;

	*g = (struct gathering){.o = o, .store = {.dir = -1, .list = -1}};
	g->config = (struct gather_config){
	    .token = &g->token,
	    .store = &g->store,
	    .listener = -1,
	    .beacons = -1,
	    .stop = -1,
	    .most = o->most,
	    .notices = {begun, continued, lost, complete, cancelled, refused, g}};
	ret = token_read(o->token, &g->token, &err);
	if (!ret)
		ret = open_sockets(g, &err);
	if (!ret)
		ret = store_open(o->folder, &g->store, &err);
	if (!ret) {
		announce(g);
		return 0;
	}
	gathering_close(g);
	return complain(&err);
}

int gathering_run(struct gathering *g)
{
	struct mp_err err = {0};

	open_files_raise();	  /* a recording needs two while it grows */
	signal(SIGXFSZ, SIG_IGN); /* then RLIMIT_FSIZE is an error like a full disk */
	g->config.stop = ending_signals(0);
	return gather_run(&g->config, &err) ? complain(&err) : MP_EXIT_OK;
}

void gathering_close(struct gathering *g)
{
	const int fd[] = {g->config.listener, g->config.beacons, g->config.stop};

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	store_close(&g->store);
}

static _Noreturn void run_as_child(struct gathering *g, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	exit(getppid() == parent ? gathering_run(g) : MP_EXIT_FAILURE);
}

int gathering_start(struct gathering *g, pid_t *child)
{
	struct mp_err err = {0};
	pid_t parent = getpid();

	fflush(NULL);
	*child = fork();
	if (!*child)
		run_as_child(g, parent);
	if (*child > 0)
		return 0;
	mp_fail(&err, MP_EXIT_FAILURE, -errno, "cannot start a process: %s", strerror(errno));
	return complain(&err);
}

int gathering_end(pid_t child)
{
	int status = 0;

	kill(child, SIGTERM);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	/* The signal can come before the child takes it. */
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGTERM ? MP_EXIT_OK : MP_EXIT_FAILURE;
	return WEXITSTATUS(status);
}
