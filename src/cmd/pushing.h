/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof attach --push and --metrics: the options, and the command. */
#ifndef CMD_PUSHING_H
#define CMD_PUSHING_H

#include <getopt.h>
#include <stdbool.h>
#include "control/options.h"
#include "push/push.h"

/* clang-format off */
#define PUSHING_LONG \
	{"continuous", no_argument, NULL, 256}, {"push", required_argument, NULL, 257}, \
	{"every", required_argument, NULL, 258}, {"label", required_argument, NULL, 259}, \
	{"no-symbols", no_argument, NULL, 260}, {"push-headers", required_argument, NULL, 261}, \
	{"spool", required_argument, NULL, 262}, {"spool-size", required_argument, NULL, 263}, \
	{"metrics", required_argument, NULL, 264}
#define PUSHING_HELP \
	"      --push URL       send a profile to a store again and again: otlp+http://HOST:PORT,\n" \
	"                       pyroscope+http://..., parca+http://... (or https), or a directory for\n" \
	"                       pprof files; several are possible\n" \
	"      --continuous     with --push or --metrics: keep no recording (the default without -o)\n" \
	"      --every TIME     with --push: length of a profile's window (default 60s)\n" \
	"      --label KEY=VALUE\n" \
	"                       with --push: an attribute of the process, such as service.name=shop\n" \
	"      --no-symbols     with --push: only addresses and build ids; the store finds the names\n" \
	"      --push-headers FILE\n" \
	"                       has the headers of requests to the --push before it, such as\n" \
	"                       Authorization: Bearer SECRET\n" \
	"      --spool DIR      with --push: keep there what a store does not take now (default: in\n" \
	"                       a temporary directory)\n" \
	"      --spool-size N   for each store, and for a directory of pprof files: remove the oldest\n" \
	"                       if they have more bytes (default 256M)\n" \
	"      --metrics PORT   serve live bytes, losses, sampling and cost to Prometheus, at\n" \
	"                       127.0.0.1; ADDR:PORT at that address\n"
/* clang-format on */

struct pushing {
	struct push_options push;
	const char *metrics;  /* [ADDR:]PORT; NULL: none */
	struct push *at;      /* while the command runs */
	int last_view;	      /* a file */
	bool continuous, any; /* any: an option was given that needs --push */
	const char *labels[64];
};

/* Handles an option of PUSHING_LONG.  Return: 1: it was one; 0: not; -1 after it printed an error. */
int pushing_option(struct pushing *p, int opt, const char *arg);
/* Checks the options when all are known.  @o: those of the recording.  Return: 0, or MP_EXIT_USAGE after it printed an
 * error. */
int pushing_settle(struct pushing *p, struct recording_options *o);
/* Return: whether pushing_run() is to record, not recording_run(). */
bool pushing_wanted(const struct pushing *p);
/* Records process @pid, pushes its profiles and serves its metrics.  Return: the exit status after it printed errors. */
int pushing_run(struct pushing *p, pid_t pid, const struct recording_options *o);
void pushing_free(struct pushing *p);

#endif
