/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The server of `memprof server`: it answers requests about recordings until it is told to end. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdint.h>
#include "lib/err.h"
#include "server/access.h"
#include "server/folder.h"
#include "server/listen.h"
#include "server/pool.h"
#include "server/recordings.h"

struct server {
	struct recordings recordings;
	VEC(struct folder) folders; /* the recordings that appear there are added */
	struct access_rules rules;
	struct pool_limits limits;
	struct listener listener;
};

/**
 * server_run() - serve until SIGINT, SIGTERM or SIGHUP
 * @s: filled, with a listener that is open, which is taken over
 * @ready: called when these signals end the server, and no longer the program
 *
 * Return: 0 or a negative errno with @err.
 */
int server_run(struct server *s, void (*ready)(const struct server *s), struct mp_err *err);

#endif
