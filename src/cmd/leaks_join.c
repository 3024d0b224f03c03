/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/leaks_join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "attach/maps.h"
#include "attach/mem.h"
#include "attach/procfs.h"
#include "control/jit.h"
#include "control/requests.h"
#include "lib/deadline.h"
#include "model/weight.h"

#define START_SLACK_NS 500000000u /* tolerates adjustments of the wall clock */
#define MAX_INLINED    64

static uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t started_unix_ns(pid_t pid)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	return clock_now(CLOCK_REALTIME) - clock_now(CLOCK_BOOTTIME) +
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

/* Finds the session's recorder, if one is at work.  Return: false with @j->why_not. */
static bool find_session(struct leak_join *j, pid_t pid, struct ss_journal *journal)
{
	struct ss_gate gate = {0};
	struct ss_control c;
	struct mem mem;

	if (!session_peek(pid, &c, journal) || mem_open(&mem, pid)) {
		snprintf(j->why_not, sizeof(j->why_not), "memprof is not recording this process");
		return false;
	}
	if (mem_read(&mem, journal->gate_addr, &gate, sizeof(gate)))
		gate.session_addr = 0;
	mem_close(&mem);
	if (gate.session_addr && recorder_lives(journal))
		return true;
	snprintf(
	    j->why_not, sizeof(j->why_not),
	    "this process has no running recorder (memprof attach -p %d continues the recording)",
	    pid);
	return false;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int join_find(struct leak_join *j, const struct target *t, const char *file, struct mp_err *err)
{
	struct ss_journal journal;
	struct mp_err why = {0};
	bool session;
	int ret;

	memset(j, 0, sizeof(*j));
	j->pid = t->pid;
	session = find_session(j, t->pid, &journal);
	if (file) {
		ret = check_info(file, t, err);
		if (ret)
			return ret;
		snprintf(j->path, sizeof(j->path), "%s", file);
		j->live = session && same_file(file, journal.recording);
		return 0;
	}
	if (!session)
		return 0;
	if (check_info(journal.recording, t, &why)) {
		snprintf(j->why_not, sizeof(j->why_not), "%.500s", why.what);
		return 0;
	}
	snprintf(j->path, sizeof(j->path), "%s", journal.recording);
	j->live = true;
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

/* Reads the recording.  *@at_ns: when the snapshot was taken, in the recording's time. */
static int read_recording(struct leak_join *j, const struct analysis *a, uint64_t *at_ns,
			  struct mp_err *err)
{
	uint64_t since = mono_ns() - a->taken_ns, unix_ns;
	struct recorder_boundary b = {0};
	struct ss_journal journal;
	int ret;

	/* After the flush the file has everything up to the request, and @b's time is not before
	 * it.  If the recorder cannot be asked, the file is used as it is. */
	j->live = j->live && !request_send(j->pid, "flush", &journal, &b, NULL);
	ret = model_load(j->path, NULL, &j->m, err);
	if (ret)
		return ret;
	j->read = true;
	if (j->live) {
		*at_ns = b.time_ns > since ? b.time_ns - since : 0;
	} else {
		unix_ns = clock_now(CLOCK_REALTIME) - (mono_ns() - a->taken_ns);
		*at_ns = unix_ns > j->m.info.start_unix_ns ? unix_ns - j->m.info.start_unix_ns : 0;
		j->ended_ns = *at_ns > j->m.facts.end_ns ? *at_ns - j->m.facts.end_ns : 0;
	}
	j->began_ns = *at_ns;
	j->sampled = model_is_estimated(&j->m);
	if (j->m.facts.has_finish && (j->m.facts.finish.reason == MP_END_EXECED ||
				      j->m.facts.finish.reason == MP_END_EXITED))
		return refused(j->path, j->pid, "the recorded process has ended", err);
	if (!same_program(&j->m, j->pid))
		return refused(j->path, j->pid, "the process has executed another program since",
			       err);
	return 0;
}

/* Names generated code, as the recorder will at its end.  Which names were valid before the recording
 * began is not known here. */
static void name_jit(struct leak_join *j)
{
	struct symbols *symbols = model_late_symbols(&j->m);
	const char *dump = NULL;
	struct jit_files files;
	struct maps maps;

	if (!symbols || maps_read(j->pid, &maps))
		return;
	jit_files_open(&files, j->pid);
	vec_for_each (&maps.list, map) {
		if (map->exec && jit_files_is_dump(&files, map->path))
			dump = map->path;
	}
	jit_files_name(&files, dump, symbols, j->m.stacks.pc.at, j->m.stacks.pc.n, NULL);
	jit_files_close(&files);
	maps_free(&maps);
}

/* -------------------------------------------------------------- joining -- */

static struct match *leaked_blocks(const struct analysis *a, size_t *n)
{
	struct match *list = calloc(a->leaks.total_count + 1ull, sizeof(*list));

	*n = 0;
	for (uint32_t b = 0; list && b < a->graph.n; b++) {
		if (a->leaks.owner[b]) {
			list[*n].addr = a->graph.block[b].addr;
			list[(*n)++].usable = a->graph.block[b].size;
		}
	}
	return list;
}

static const struct match *origin_of(const struct match *list, size_t n, uint64_t addr)
{
	size_t low = 0, high = n;

	while (low + 1 < high) {
		size_t mid = low + (high - low) / 2;

		if (list[mid].addr <= addr)
			low = mid;
		else
			high = mid;
	}
	return &list[low];
}

/* Removes leaks that were freed after the snapshot: they were still referenced, and so was all that
 * only they held. */
static int drop_freed(struct leak_join *j, struct analysis *a, const struct match *list, size_t n)
{
	uint32_t *keep = calloc(a->leaks.direct.n + 1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	j->freed = (struct join_sum){a->leaks.total_count, a->leaks.total_bytes};
	for (size_t i = 0; i < a->leaks.direct.n; i++)
		keep[i] =
		    origin_of(list, n, a->graph.block[a->leaks.direct.at[i].block].addr)->state !=
		    MATCH_FREED;
	leaks_keep(&a->leaks, &a->graph, keep);
	j->freed.count -= a->leaks.total_count;
	j->freed.bytes -= a->leaks.total_bytes;
	free(keep);
	return 0;
}

/* Sums up the blocks that are still leaks, and removes the others from @list. */
static size_t sum_up(struct leak_join *j, const struct analysis *a, struct match *list)
{
	uint64_t lost = mp_losses_frees(&j->m.facts.losses), old = 0;
	size_t n = 0, i = 0;

	for (uint32_t b = 0; b < a->graph.n; b++) {
		struct join_sum *sum;

		if (!a->leaks.owner[b])
			continue;
		while (list[i].addr != a->graph.block[b].addr)
			i++;
		list[n] = list[i++];
		sum = list[n].state == MATCH_KNOWN ? &j->known : &j->unknown;
		sum->count++;
		sum->bytes += list[n].usable;
		old += list[n].state == MATCH_KNOWN &&
		       list[n].time_ns <= j->m.facts.losses.last_loss_ns;
		n++;
	}
	j->uncertain = old < lost ? old : lost;
	return n;
}

static struct leak_source source_of(const struct match *o, uint64_t at_ns)
{
	if (o->state != MATCH_KNOWN)
		return (struct leak_source){0};
	return (struct leak_source){.known = true,
				    .older = o->older,
				    .stack = o->stack,
				    .tid = o->tid,
				    .age_ns = at_ns - o->time_ns};
}

static int split(struct analysis *a, const struct match *list, size_t n, uint64_t at_ns)
{
	struct leak_source *source = calloc(a->leaks.direct.n + 1, sizeof(*source));
	int ret = source ? 0 : -ENOMEM;

	for (size_t i = 0; i < a->leaks.direct.n && !ret; i++)
		source[i] = source_of(
		    origin_of(list, n, a->graph.block[a->leaks.direct.at[i].block].addr), at_ns);
	if (!ret)
		ret = clusters_split(&a->clusters, &a->graph, &a->leaks, source);
	free(source);
	return ret;
}

/* Finds the allocation of --why's block, which can be live at the snapshot without being leaked,
 * and freed since. */
static int explain(const struct leak_join *j, struct why *w, uint64_t at_ns, struct mp_err *err)
{
	struct match o = {.addr = w->block.addr, .usable = w->block.size};
	int ret = match_find(&j->m, &o, 1, at_ns, err);

	if (o.state == MATCH_FREED)
		o.state = MATCH_KNOWN;
	if (!ret)
		w->source = source_of(&o, at_ns);
	return ret;
}

int join_make(struct leak_join *j, struct analysis *a, struct mp_err *err)
{
	uint64_t at_ns = 0;
	struct match *list;
	size_t n;
	int ret;

	if (!j->path[0])
		return 0;
	ret = read_recording(j, a, &at_ns, err);
	if (ret)
		return ret;
	name_jit(j);
	list = leaked_blocks(a, &n);
	if (!list)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	ret = match_find(&j->m, list, n, at_ns, err);
	if (!ret && n) {
		ret = drop_freed(j, a, list, n);
		if (!ret) {
			n = sum_up(j, a, list);
			ret = split(a, list, n, at_ns);
		}
		if (ret)
			mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	if (!ret && a->why.block.size)
		ret = explain(j, &a->why, at_ns, err);
	if (!ret)
		match_weigh(&j->m, list, n);
	free(list);
	return ret;
}

bool join_any_name(void *join, uint32_t stack, bool (*matches)(const char *, const char *),
		   const char *pattern)
{
	struct leak_join *j = join;
	const struct model_stack *s = &j->m.stacks.at[stack < j->m.stacks.n ? stack : 0];

	for (uint32_t i = 0; i < s->n; i++) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(&j->m, j->m.stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0) {
			if (matches(pattern, f[n].function) ||
			    (f[n].source && matches(pattern, f[n].source)) ||
			    (f[n].library && matches(pattern, f[n].library)))
				return true;
		}
	}
	return false;
}

void join_free(struct leak_join *j)
{
	if (j->read)
		model_free(&j->m);
	j->read = false;
}
