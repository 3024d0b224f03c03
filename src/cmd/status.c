/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "attach/mem.h"
#include "attach/proc/procfs.h"
#include "cmd/cmd.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "control/requests.h"
#include "export/text/terminal.h"
#include "inject/find.h"
#include "inject/session.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"

static const char help[] = "usage: memprof status [-p PID | -n NAME] [--json]\n"
			   "Lists the processes that have a memprof session, or shows one.\n"
			   "  -p, --pid PID    only this process\n"
			   "  -n, --name NAME  only the process with this name\n"
			   "      --json       as JSON\n";

#define INDENT 9

struct line {
	pid_t pid;
	struct proc_status st;
	struct ss_control c;
	struct ss_journal j;
	bool recorder_lives, child;
};

static bool read_line(pid_t pid, struct line *l)
{
	struct ss_gate gate;
	struct mem mem;
	bool ok;

	if (!session_peek(pid, &l->c, &l->j) || mem_open(&mem, pid))
		return false;
	ok = !mem_read(&mem, l->j.gate_addr, &gate, sizeof(gate)) &&
	     !proc_status_read(pid, 0, &l->st);
	mem_close(&mem);
	if (!ok)
		return false;
	l->pid = pid;
	l->child = !gate.session_addr;
	l->recorder_lives = recorder_lives(&l->j);
	return true;
}

static const char *state(const struct line *l)
{
	if (l->child)
		return "forked from a recorded process, not recorded";
	if (!l->recorder_lives && l->j.state != SS_DORMANT)
		return "no running recorder; run: memprof attach (continues) or memprof detach "
		       "(restores)";
	return session_state_text(l->j.state);
}

/* Return: bytes requested for each sample now; 0: every allocation is recorded.  The target can have
 * changed the level. */
static uint64_t interval(const struct ss_control *c)
{
	return c->sample_level ? 1ull << (c->sample_level & 63) : 0;
}

static void print_text(const struct line *l)
{
	time_t at = (time_t)l->j.started_at;
	char since[32] = "?";
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%7d  %s%-15s%s  since %s  %s\n", l->pid, term_on(stdout, TERM_BOLD),
	       printable(l->st.name), term_off(stdout), since, state(l));
	if (!l->child)
		term_line(stdout, 0, INDENT,
			  "         %s, %s live in %s, lost %s; recorder %d, file %s",
			  counted(l->c.seen_events, "event"), human(l->c.seen_live_bytes),
			  counted(l->c.seen_live_blocks, "block"),
			  l->c.seen_lost ? thousands(l->c.seen_lost) : "nothing", l->j.recorder_pid,
			  printable(l->j.recording));
	if (!l->child && l->c.overhead_ppm)
		term_line(stdout, 0, INDENT, "         cost %s of at most %s; recorded now: %s%s",
			  human_part((uint32_t)l->c.seen_cost_ppm), human_part(l->c.overhead_ppm),
			  interval(&l->c) ? "one allocation per " : "every allocation",
			  interval(&l->c) ? human(interval(&l->c)) : "");
	if (!l->child && l->c.seen_pieces_deleted)
		term_line(stdout, 0, INDENT, "         %s deleted (--keep)",
			  counted(l->c.seen_pieces_deleted, "old piece"));
	if (!l->child && l->c.seen_live_only)
		term_line(
		    stdout, 0, INDENT,
		    "         live heap only: the file is written at memprof flush and at the end");
	if (!l->child && l->c.seen_thinned && !l->c.overhead_ppm)
		term_line(stdout, 0, INDENT, "         estimated: %s thinned out",
			  counted(l->c.seen_thinned, "allocation"));
	if (!l->child && l->c.queue.dropped_events)
		term_line(
		    stdout, 0, INDENT,
		    "         queue: %s of %s, peak %s; dropped %s, with %s, %s of records",
		    human(l->c.queue.bytes), human(l->c.queue.ceiling),
		    human(l->c.queue.peak_bytes), counted(l->c.queue.dropped_batches, "batch"),
		    counted(l->c.queue.dropped_events, "event"), human(l->c.queue.dropped_bytes));
}

/* null without a budget. */
static void print_budget(yajl_gen g, const struct ss_control *c)
{
	json_name(g, "overhead");
	if (!c->overhead_ppm) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	json_part(g, "budget", c->overhead_ppm);
	json_part(g, "cost", (uint32_t)c->seen_cost_ppm);
	json_number(g, "interval_bytes", interval(c));
	yajl_gen_map_close(g);
}

static void print_json(yajl_gen g, const struct line *l)
{
	yajl_gen_map_open(g);
	json_number(g, "pid", (uint64_t)l->pid);
	json_text(g, "name", l->st.name);
	json_number(g, "since", l->j.started_at);
	json_text(g, "state", state(l));
	json_number(g, "recorder", (uint64_t)l->j.recorder_pid);
	json_boolean(g, "recorder_alive", l->recorder_lives);
	json_text(g, "recording", l->j.recording);
	json_number(g, "events", l->c.seen_events);
	json_number(g, "live_bytes", l->c.seen_live_bytes);
	json_number(g, "live_blocks", l->c.seen_live_blocks);
	json_number(g, "lost", l->c.seen_lost);
	json_number(g, "thinned_allocations", l->c.seen_thinned);
	print_budget(g, &l->c);
	json_number(g, "pieces_deleted", l->c.seen_pieces_deleted);
	json_boolean(g, "live_only", l->c.seen_live_only != 0);
	json_number(g, "queue_bytes", l->c.queue.bytes);
	json_number(g, "queue_ceiling_bytes", l->c.queue.ceiling);
	json_number(g, "queue_peak_bytes", l->c.queue.peak_bytes);
	json_number(g, "queue_dropped_batches", l->c.queue.dropped_batches);
	json_number(g, "queue_dropped_events", l->c.queue.dropped_events);
	json_number(g, "queue_dropped_bytes", l->c.queue.dropped_bytes);
	yajl_gen_map_close(g);
}

int cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
	    PROCESS_LONG, {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct dirent *e;
	struct line *l;
	bool json = false;
	pid_t only = 0;
	int c, found = 0;
	yajl_gen g;
	DIR *d;

	while ((c = getopt_long(argc, argv, ":h" PROCESS_SHORT, options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'p' || c == 'n') {
			int status = process_option("status", c, optarg, &only);

			if (status)
				return status;
			continue;
		}
		if (c != 'j')
			return option_error("status", c, argv, options);
		json = true;
	}
	if (optind < argc)
		return unexpected_argument("status", argv[optind]);
	d = opendir("/proc");
	l = calloc(1, sizeof(*l));
	g = json ? json_begin(stdout, true) : NULL;
	if (!d || !l || (json && !g)) {
		struct mp_err err = {.exit = MP_EXIT_FAILURE, .what = "cannot list /proc"};

		free(l);
		return complain(&err);
	}
	if (json)
		yajl_gen_array_open(g);
	while ((e = readdir(d))) {
		pid_t pid;

		if (!parse_pid(e->d_name, &pid) || (only && pid != only) || !read_line(pid, l))
			continue;
		found++;
		if (json)
			print_json(g, l);
		else
			print_text(l);
	}
	closedir(d);
	if (json)
		yajl_gen_array_close(g);
	else if (!found && !only)
		printf("no process has a memprof session (among those you are allowed to see)\n");
	if (json)
		yajl_gen_free(g);
	free(l);
	if (only && !found) {
		struct mp_err err = {.exit = MP_EXIT_NO_SESSION};

		if (!session_refuse_recorder(only, MP_EXIT_NO_SESSION, &err))
			snprintf(err.what, sizeof(err.what), "process %d has no memprof session",
				 only);
		return complain(&err);
	}
	return MP_EXIT_OK;
}
