/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receives recordings from any number of senders: doc/streaming.md. */
#ifndef STREAM_GATHER_H
#define STREAM_GATHER_H

#include <stdint.h>
#include "lib/err.h"
#include "stream/store.h"
#include "stream/token.h"

/* What gather_run() reports.  @from: the address of a sender; @why: not printable() yet */
struct gather_notices {
	void (*begun)(void *ctx, const struct stored *file, const char *from);
	void (*continued)(void *ctx, const struct stored *file, const char *from);
	void (*lost)(void *ctx, const struct stored *file, const char *why);
	void (*complete)(void *ctx, const struct stored *file);
	/* The recording did not begin after all; its file is removed. */
	void (*cancelled)(void *ctx, const struct stored *file);
	void (*refused)(void *ctx, const char *from, const char *why);
	void *ctx;
};

struct gather_config {
	const struct token *token;
	struct store *store;
	int listener;  /* of endpoint_listen(); -1: none */
	int beacons;   /* of beacon_listen(): connect to those that announce themselves; -1: none */
	int stop;      /* ends when it can be read */
	uint32_t most; /* ends when so many recordings are complete; 0: never */
	struct gather_notices notices;
};

/* Receives until it is told to end, by one thread.  Return: 0, or a negative errno with @err. */
int gather_run(const struct gather_config *config, struct mp_err *err);

#endif
