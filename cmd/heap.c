/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "leaks/census.h"
#include "leaks/snapshot.h"

static const char help[] =
    "usage: memprof heap -p PID [options]\n"
    "Everything live in the heap of a running process by type and size, and where its memory is.\n"
    "  -p, --pid PID        the process\n"
    "      --list FILE      write every live block: address, usable size\n"
    "      --in-place       keep the process stopped instead of copying it\n";

static int write_list(const struct census *c, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, strerror(errno));
		return MP_EXIT_OUTPUT;
	}
	vec_for_each (&c->blocks, b)
		fprintf(f, "%" PRIx64 " %" PRIu64 "\n", b->addr, b->size);
	if (fclose(f)) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, strerror(errno));
		return MP_EXIT_OUTPUT;
	}
	return MP_EXIT_OK;
}

int cmd_heap(int argc, char **argv)
{
	static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
						{"list", required_argument, NULL, 'L'},
						{"in-place", no_argument, NULL, 'I'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct mp_err err = {0};
	struct snapshot_plan plan;
	const char *list = NULL;
	struct snapshot s;
	struct census census;
	struct target t;
	bool in_place = false;
	pid_t pid = 0;
	int c, status = MP_EXIT_OK;

	while ((c = getopt_long(argc, argv, "p:h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'L')
			list = optarg;
		else if (c == 'I')
			in_place = true;
		else if (c != 'p')
			return usage_error("heap: unknown option or missing value");
		else if (!parse_pid(optarg, &pid))
			return usage_error("heap: -p: '%s' is not a process id", optarg);
	}
	if (!pid)
		return usage_error("heap: which process? give -p PID");
	if (target_look(&t, pid, &err) || snapshot_plan(&plan, &t, in_place, &err) ||
	    snapshot_take(&s, &t, &plan, 5000, &err))
		return complain(&err);
	if (census_take(&census, &s.image, &err))
		status = complain(&err);
	if (snapshot_end(&s, &err))
		status = complain(&err);
	if (!status) {
		printf("pause %.1f ms predicted, %.1f ms measured\n", (double)plan.pause_ns / 1e6,
		       (double)s.pause_ns / 1e6);
		vec_for_each (&census.heaps, h)
			printf("%s %s: %s%s\n", h->allocator, h->version,
			       h->exact ? "exact" : "approximate: ", h->doubt);
		printf("%zu blocks, %" PRIu64 " bytes\n", census.blocks.n,
		       census_live_bytes(&census));
		if (list)
			status = write_list(&census, list);
	}
	census_free(&census);
	target_close(&t);
	return status;
}
