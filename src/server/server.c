/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/ending_signals.h"
#include "lib/open_files.h"
#include "server/http.h"
#include "server/loop.h"

#define LOOK_NS 1000000000u /* between two looks into the folders */

static void on_signal(void *ctx)
{
	*(bool *)ctx = true;
}

static void look_into_folders(struct server *s, uint64_t *next)
{
	if (mono_ns() < *next)
		return;
	vec_for_each (&s->folders, f)
		folder_look(f, &s->recordings);
	*next = mono_ns() + LOOK_NS;
}

static int serve(struct server *s, struct http *h, struct loop *loop, const bool *end)
{
	int ret = 0, ms = http_run(h);
	uint64_t next_look = mono_ns() + LOOK_NS;

	while (!ret && !*end) {
		ret = loop_step(loop, ms);
		look_into_folders(s, &next_look);
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

	open_files_raise(); /* of a connection: a socket and a pipe */
	signals.fd = ret ? -1 : ending_signals(0);
	if (!ret)
		ret = signals.fd < 0 ? signals.fd : loop_add(&loop, &signals, EPOLLIN);
	if (ret) {
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start the server: %s", strerror(-ret));
	} else {
		ret = http_open(&loop, &s->recordings, &s->rules, &s->limits, &s->listener, &http,
				err);
		if (!ret) {
			ready(s);
			ret = serve(s, http, &loop, &end);
		}
	}
	http_close(http);
	if (signals.fd >= 0)
		close(signals.fd);
	loop_close(&loop);
	return ret;
}
