/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "join/recording_of.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "attach/mem.h"
#include "attach/proc/maps.h"
#include "attach/proc/procfs.h"
#include "control/jit.h"
#include "control/requests.h"
#include "lib/deadline.h"
#include "model/sums/weight.h"

#define START_SLACK_NS 500000000u /* tolerates adjustments of the wall clock */

static uint64_t started_unix_ns(pid_t pid)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	return clock_read_ns(CLOCK_REALTIME) - clock_read_ns(CLOCK_BOOTTIME) +
	       proc_start_time(pid) * tick_ns;
}

/* ------------------------------------------------- finding the recording -- */

static int refused(const char *path, pid_t pid, const char *why, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "%s is no recording of process %d: %s", path,
		       pid, why);
}

/* Checks that @path is a recording of this process: it has the same pid, and the process started
 * before the recording did, so the pid was not reused. */
static int check_info(const char *path, const struct target *t, struct mp_err *err)
{
	struct mpf_reader *r = NULL;
	struct mp_info info;
	int ret = mpf_open(path, &r, &info, err);

	if (ret)
		return ret;
	if (info.pid != (uint32_t)t->pid)
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "%s is a recording of process %u, not of %d", path, info.pid, t->pid);
	else if (info.what == MP_PAGE_FAULTS)
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "%s is a recording of page faults, which has no blocks", path);
	else if (started_unix_ns(t->pid) > info.start_unix_ns + START_SLACK_NS)
		ret = refused(path, t->pid, "the process started after the recording", err);
	mpf_reader_free(r);
	return ret;
}

/* Finds the session's recorder, if one is at work.  Return: false with @r->why_not. */
static bool find_session(struct recording_of *r, pid_t pid, struct ss_journal *journal)
{
	struct ss_gate gate = {0};
	struct ss_control c;
	struct mem mem;

	if (!session_peek(pid, &c, journal) || mem_open(&mem, pid)) {
		snprintf(r->why_not, sizeof(r->why_not), "memprof is not recording this process");
		return false;
	}
	if (mem_read(&mem, journal->gate_addr, &gate, sizeof(gate)))
		gate.session_addr = 0;
	mem_close(&mem);
	if (gate.session_addr && recorder_lives(journal))
		return true;
	snprintf(
	    r->why_not, sizeof(r->why_not),
	    "this process has no running recorder (memprof attach -p %d continues the recording)",
	    pid);
	return false;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int recording_of_find(struct recording_of *r, const struct target *t, const char *file,
		      struct mp_err *err)
{
	struct recorder_boundary b;
	struct ss_journal journal;
	struct mp_err why = {0};
	bool session;
	int ret;

	memset(r, 0, sizeof(*r));
	r->pid = t->pid;
	session = find_session(r, t->pid, &journal);
	if (file) {
		ret = check_info(file, t, err);
		if (ret)
			return ret;
		snprintf(r->path, sizeof(r->path), "%s", file);
		r->live = session && same_file(file, journal.recording);
		return 0;
	}
	if (!session)
		return 0;
	/* With --live-only the recorder writes the file when it is asked. */
	if (check_info(journal.recording, t, &why) &&
	    (request_send(t->pid, "flush", &journal, &b, NULL) ||
	     check_info(journal.recording, t, &why))) {
		snprintf(r->why_not, sizeof(r->why_not), "%.500s", why.what);
		return 0;
	}
	snprintf(r->path, sizeof(r->path), "%s", journal.recording);
	r->live = true;
	return 0;
}

/* ------------------------------------------------------------- reading -- */

/* Has the process not executed another program since?  A module that was mapped when the recording
 * began can be gone; but the same path at another address means another program. */
static bool same_program(const struct model *m, pid_t pid)
{
	struct maps maps;
	bool there = false, elsewhere = false;

	if (maps_read(pid, &maps))
		return true;
	vec_for_each (&m->facts.modules, mod) {
		if (mod->time_ns || !*mod->path)
			continue;
		vec_for_each (&maps.list, map) {
			if (!map->exec || strcmp(map->path, mod->path) != 0)
				continue;
			there |= map->start <= mod->start && mod->start < map->end;
			elsewhere |= map->start > mod->start || mod->start >= map->end;
		}
	}
	maps_free(&maps);
	return there || !elsewhere;
}

static int read_recording(struct recording_of *r, uint64_t taken_ns, struct mp_err *err)
{
	uint64_t since = mono_ns() - taken_ns, unix_ns;
	struct recorder_boundary b = {0};
	struct ss_journal journal;
	int ret;

	/* After the flush the file has everything up to the request, and @b's time is not before
	 * it.  If the recorder cannot be asked, the file is used as it is. */
	r->live = r->live && !request_send(r->pid, "flush", &journal, &b, NULL);
	ret = model_load(r->path, NULL, &r->m, err);
	if (ret)
		return ret;
	r->read = true;
	if (r->live) {
		r->at_ns = b.time_ns > since ? b.time_ns - since : 0;
	} else {
		unix_ns = clock_read_ns(CLOCK_REALTIME) - (mono_ns() - taken_ns);
		r->at_ns =
		    unix_ns > r->m.info.start_unix_ns ? unix_ns - r->m.info.start_unix_ns : 0;
		r->ended_ns = r->at_ns > r->m.facts.end_ns ? r->at_ns - r->m.facts.end_ns : 0;
	}
	r->began_ns = r->at_ns;
	r->sampled = model_is_estimated(&r->m);
	if (r->m.facts.has_finish && (r->m.facts.finish.reason == MP_END_EXECED ||
				      r->m.facts.finish.reason == MP_END_EXITED))
		return refused(r->path, r->pid, "the recorded process has ended", err);
	if (!same_program(&r->m, r->pid))
		return refused(r->path, r->pid, "the process has executed another program since",
			       err);
	return 0;
}

/* Names generated code, as the recorder will at its end.  Which names were valid before the recording
 * began is not known here. */
static void name_jit(struct recording_of *r)
{
	struct symbols *symbols = model_late_symbols(&r->m);
	const char *dump = NULL;
	struct jit_files files;
	struct maps maps;

	if (!symbols || maps_read(r->pid, &maps))
		return;
	jit_files_open(&files, r->pid);
	vec_for_each (&maps.list, map) {
		if (map->exec && jit_files_is_dump(&files, map->path))
			dump = map->path;
	}
	jit_files_name(&files, dump, symbols, r->m.stacks.pc.at, r->m.stacks.pc.n, NULL);
	jit_files_close(&files);
	maps_free(&maps);
}

int recording_of_read(struct recording_of *r, uint64_t taken_ns, struct mp_err *err)
{
	int ret = read_recording(r, taken_ns, err);

	if (!ret)
		name_jit(r);
	return ret;
}

void recording_of_json(const struct recording_of *r, yajl_gen g)
{
	json_text(g, "path", r->path);
	json_boolean(g, "live", r->live);
	json_number(g, "began_before_ns", r->began_ns);
	json_number(g, "ended_before_ns", r->ended_ns);
}

void recording_of_free(struct recording_of *r)
{
	if (r->read)
		model_free(&r->m);
	r->read = false;
}
