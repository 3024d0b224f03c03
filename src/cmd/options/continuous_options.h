/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options of memprof attach for continuous profiles and for several processes: --push, --metrics, --all. */
#ifndef CMD_OPTIONS_CONTINUOUS_OPTIONS_H
#define CMD_OPTIONS_CONTINUOUS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include "control/options.h"
#include "fleet/container.h"
#include "fleet/fleet.h"
#include "push/stores.h"

/* clang-format off */
#define CONTINUOUS_LONG \
	{"continuous", no_argument, NULL, 256}, {"push", required_argument, NULL, 257}, \
	{"every", required_argument, NULL, 258}, {"label", required_argument, NULL, 259}, \
	{"no-symbols", no_argument, NULL, 260}, {"push-headers", required_argument, NULL, 261}, \
	{"spool", required_argument, NULL, 262}, {"spool-size", required_argument, NULL, 263}, \
	{"metrics", required_argument, NULL, 264}, {"all", no_argument, NULL, 265}, \
	{"comm", required_argument, NULL, 266}, {"cgroup", required_argument, NULL, 267}, \
	{"container", required_argument, NULL, 268}, {"min-rss", required_argument, NULL, 269}, \
	{"most", required_argument, NULL, 270}
#define CONTINUOUS_HELP \
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
	"                       127.0.0.1; ADDR:PORT at that address\n" \
	"      --all            record all processes that may be traced, also those that start later\n" \
	"                       (5 s after that); with --overhead 1% unless that or --sample is given\n" \
	"      --comm REGEX     with --all: only processes whose name matches\n" \
	"      --cgroup PATH    with --all: only those in this cgroup or below, such as /system.slice;\n" \
	"                       several are possible\n" \
	"      --container ID   with --all: only those in this container; ID can be its name\n" \
	"      --min-rss SIZE   with --all: only those with at least so much resident memory\n" \
	"      --most N         record at most N processes at the same time (default 256)\n"
/* clang-format on */

struct continuous_options {
	struct stores_config stores;
	struct push_options push;
	struct fleet_options fleet;
	const char *metrics; /* [ADDR:]PORT; NULL: none */
	const char *comm, *container;
	char container_id[CONTAINER_ID];
	bool continuous;
	const char
	    *first; /* option that needs --push, and that needs --all; NULL: none was given */
	const char *first_of_all;
	const char *labels[64];
};

/* Handles an option of CONTINUOUS_LONG.  Return: 1: it was one; 0: not; -1 after it printed an error. */
int continuous_option(struct continuous_options *c, int opt, const char *arg);
/* Handles -p and -n, of which several are possible.  Return: 0, or MP_EXIT_USAGE after it printed an error. */
int continuous_process(struct continuous_options *c, int opt, const char *arg);
/* Return: whether the options are for continuous_run(), not recording_run().  @processes: how many -p and -n name. */
bool continuous_wanted(const struct continuous_options *c, size_t processes);
/* Checks the options when all are known.  @wanted: continuous_wanted().  @o: those of the recording.  Return: 0, or
 * MP_EXIT_USAGE after it printed an error. */
int continuous_settle(struct continuous_options *c, bool wanted, struct recording_options *o);
void continuous_free(struct continuous_options *c);

#endif
