/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receives recordings, and prints what happens to them: for memprof gather, and memprof server --gather. */
#ifndef CMD_GATHERING_H
#define CMD_GATHERING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "stream/endpoint.h"
#include "stream/gather.h"

struct gathering_options {
	const char *folder;
	const char *token;  /* path of the file */
	const char *listen; /* [ADDR:]PORT; NULL: the usual port, but with @find none */
	bool find;	    /* connect to senders that announce themselves */
	bool quiet;	    /* print only what goes wrong */
	uint32_t most;	    /* end when so many are complete; 0: never */
};

struct gathering {
	const struct gathering_options *o;
	struct token token;
	struct store store;
	struct gather_config config;
	char at[ENDPOINT_TEXT]; /* where it listens */
};

/* Opens the folder and the sockets, and prints where it listens.  @o: must exist as long as @g.  Return: 0, or
 * the exit status after it printed an error; there is then nothing to close. */
int gathering_open(const struct gathering_options *o, struct gathering *g);
/* Receives until SIGINT, SIGTERM or SIGHUP, which it blocks.  Return: the exit status, after it printed an
 * error. */
int gathering_run(struct gathering *g);
/* Does this in a process of its own, which ends with this one.  Return: 0 with @child, or the exit status after it
 * printed an error. */
int gathering_start(struct gathering *g, pid_t *child);
/* Ends that process.  Return: its exit status. */
int gathering_end(pid_t child);
void gathering_close(struct gathering *g);

#endif
