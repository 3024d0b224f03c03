/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/precopy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/limits.h"
#include "lib/deadline.h"
#include "lib/fault.h"
#include "snapshot/hand.h"

#define RUNS	   8192
#define TRACKED	   (1ull << 20) /* smaller mappings are read in the stop */
#define ENOUGH	   (8ull << 20) /* the stop reads this much in a few milliseconds */
#define MAX_ROUNDS 12
#define RESERVE	   (256ull << 20) /* of the machine's memory, left for other processes */

uint64_t precopy_room(void)
{
	uint64_t machine = limits_machine(), left;
	struct limits own;

	left = limits_read(getpid(), &own) ? NO_LIMIT : own.cgroup;
	left = left < machine ? left : machine;
	return left > RESERVE ? left - RESERVE : 0;
}

static bool is_anonymous(const char *path)
{
	return path[0] != '/' && strncmp(path, "[v", 2) != 0 && strcmp(path, "[stack]") != 0;
}

/* The maps that a copy would have frozen, as far as they can contain roots or heaps. */
static bool is_frozen(const struct image_map *m)
{
	return !m->shared && (m->write || !m->exec) && strncmp(m->path, "[v", 2) != 0;
}

int precopy_begin(struct precopy *p, struct target *t, struct mp_err *err)
{
	char path[64];
	int ret;

	memset(p, 0, sizeof(*p));
	p->pid = t->pid;
	ret = track_begin(&p->track, t, err);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/mem", proc_of(t->pid));
	p->mem = open(path, O_RDONLY | O_CLOEXEC);
	if (p->mem < 0)
		ret = mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot open %s: %s", path,
			      strerror(errno));
	p->runs = malloc(RUNS * sizeof(p->runs[0]));
	if (!ret && !p->runs)
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory to read process %d into",
			      t->pid);
	if (ret)
		precopy_free(p);
	return ret;
}

/* Processor time of memprof: in the stop its raised priority keeps other threads from preempting
 * it. */
static uint64_t work_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Return: 1 if all of it was read, 0 if not; or -ENOMEM. */
static int read_run(struct precopy *p, uint64_t at, uint64_t end)
{
	uint64_t start = work_ns();

	while (at < end) {
		size_t len = (size_t)(end - at);
		uint8_t *to = frozen_room(&p->frozen, at, &len);
		ssize_t got;

		if (!to)
			return -ENOMEM;
		got = pread(p->mem, to, len, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		at += (uint64_t)got;
		p->read_bytes += (uint64_t)got;
	}
	p->read_ns += work_ns() - start;
	return at == end;
}

/* Reads what was written in one tracked range, and tracks further writes to it. */
static int gather_range(struct precopy *p, const struct track_range *range)
{
	uint64_t at = range->start;

	while (at < range->end) {
		uint64_t start = work_ns();
		long n = track_scan(&p->track, &at, range->end, true, p->runs, RUNS);
		int all;

		p->scan_ns += work_ns() - start;
		if (n < 0)
			return (int)n;
		if (hand_wanted())
			return -EINTR;
		if (!n)
			at = track_next(&p->track, at, range->end);
		if (n && !precopy_room())
			return -ENOMEM;
		for (long i = 0; i < n; i++) {
			all = read_run(p, p->runs[i].start, p->runs[i].end);
			if (all < 0)
				return all;
			if (!all)
				track_forget(&p->track, p->runs[i].start, p->runs[i].end);
		}
		fault_point("precopy-read");
	}
	return 0;
}

/* Tracks adjacent mappings as one range, so that the kernel can still merge them if the border
 * between them moves. */
static void track_maps(struct precopy *p, const struct maps *maps)
{
	uint64_t start = 0, end = 0;

	vec_for_each (&maps->list, m) {
		bool ours = !m->shared && is_anonymous(m->path);

		if (ours && end == m->start) {
			end = m->end;
			continue;
		}
		/* A range that cannot be tracked is read in the stop. */
		if (end - start >= TRACKED && !track_has(&p->track, start, end))
			ignore_result(track_add(&p->track, start, end));
		start = ours ? m->start : 0;
		end = ours ? m->end : 0;
	}
	if (end - start >= TRACKED && !track_has(&p->track, start, end))
		ignore_result(track_add(&p->track, start, end));
}

/* Bytes in other mappings, which the stop must read completely. */
static uint64_t untracked(struct precopy *p, const struct maps *maps)
{
	uint64_t sum = 0;

	vec_for_each (&maps->list, m) {
		uint64_t at = m->start;

		if (m->shared || !m->write || track_has(&p->track, m->start, m->end))
			continue;
		while (at < m->end) {
			long n = track_scan(&p->track, &at, m->end, false, p->runs, RUNS);

			if (n < 0)
				break;
			for (long i = 0; i < n; i++)
				sum += p->runs[i].end - p->runs[i].start;
		}
	}
	return sum;
}

/* Runs one round.  Return: 0 with the untracked bytes in *@rest, or -errno. */
static int gather(struct precopy *p, uint64_t *rest)
{
	struct maps maps;
	int ret = maps_read(p->pid, &maps);

	p->scan_ns = p->read_ns = p->read_bytes = 0;
	p->rounds++;
	if (ret)
		return ret;
	track_maps(p, &maps);
	for (size_t i = 0; i < p->track.ranges.n && !ret; i++)
		ret = gather_range(p, &p->track.ranges.at[i]);
	*rest = ret ? 0 : untracked(p, &maps);
	maps_free(&maps);
	if (p->read_bytes > p->rate_bytes) {
		p->rate_bytes = p->read_bytes;
		p->rate_ns = p->read_ns;
	}
	return ret;
}

static int failed(const struct precopy *p, int ret, struct mp_err *err)
{
	if (ret == -ETIME)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "process %d was released before everything it had written was read: "
			       "the pause would have been longer than allowed",
			       p->pid);
	if (ret == -ENOMEM)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "there is no memory to read process %d into", p->pid);
	return mp_fail(err, ret == -ESRCH ? MP_EXIT_NO_PROCESS : MP_EXIT_FAILURE, ret,
		       "the memory of process %d cannot be tracked: %s", p->pid, strerror(-ret));
}

int precopy_gather(struct precopy *p, struct mp_err *err)
{
	uint64_t before_ns = 0, before_bytes = UINT64_MAX;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		uint64_t start = mono_ns(), ns, rest, next;
		int ret = gather(p, &rest);

		if (ret)
			return failed(p, ret, err);
		ns = mono_ns() - start;
		/* Assumes that memory is written at the rate of the round before, for as long as
		 * this one took. */
		next = before_ns
			   ? (uint64_t)((double)p->read_bytes * (double)ns / (double)before_ns)
			   : p->read_bytes;
		next = next < p->read_bytes ? next : p->read_bytes;
		p->left = next + rest;
		if (before_ns && (next <= ENOUGH || p->read_bytes > before_bytes / 10 * 9))
			break;
		before_ns = ns;
		before_bytes = p->read_bytes;
	}
	fault_point("precopy-gathered");
	return 0;
}

uint64_t precopy_expect(const struct precopy *p)
{
	double per_byte = p->rate_bytes ? (double)p->rate_ns / (double)p->rate_bytes : 0;

	return p->scan_ns + (uint64_t)(per_byte * (double)p->left);
}

/* Reads the rest of one map in the stop. */
static int take_map(struct precopy *p, const struct image_map *m, const struct deadline *deadline)
{
	bool tracked = track_has(&p->track, m->start, m->end);
	uint64_t at = m->start;
	int ret = 0;

	while (at < m->end && !ret) {
		long n = track_scan(&p->track, &at, m->end, false, p->runs, RUNS);

		if (n < 0)
			return (int)n;
		for (long i = 0; i < n && !ret; i++) {
			const struct track_run *r = &p->runs[i];
			bool known = tracked && (r->categories & TRACK_ALLOWED) &&
				     !(r->categories & TRACK_WRITTEN);
			int all = 1;

			if (!m->write && (r->categories & TRACK_FILE))
				continue;
			if (!known && deadline_passed(deadline))
				return -ETIME;
			if (!known)
				all = read_run(p, r->start, r->end);
			if (all > 0)
				ret = frozen_show(&p->frozen, r->start, r->end);
			else
				ret = all;
		}
	}
	return ret;
}

int precopy_take(struct precopy *p, struct image *img, const struct deadline *deadline,
		 struct mp_err *err)
{
	int ret = 0;

	frozen_hide(&p->frozen);
	vec_for_each (&img->maps, m) {
		m->frozen = is_frozen(m);
		if (m->frozen && !ret)
			ret = deadline_passed(deadline) ? -ETIME : take_map(p, m, deadline);
	}
	if (!ret && !precopy_holds(p))
		ret = -ESRCH;
	if (ret == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, ret,
			       "process %d ended, or executed another program", p->pid);
	if (ret)
		return failed(p, ret, err);
	image_freeze(img, &p->frozen);
	fault_point("precopy-taken");
	return 0;
}

bool precopy_holds(const struct precopy *p)
{
	char byte;

	/* A read at address 0 fails, but if the process has no memory any more it returns end of
	 * file. */
	return pread(p->mem, &byte, 1, 0) != 0;
}

void precopy_settle(struct precopy *p)
{
	track_end(&p->track);
}

void precopy_free(struct precopy *p)
{
	track_end(&p->track);
	frozen_free(&p->frozen);
	free(p->runs);
	p->runs = NULL;
	if (p->mem >= 0)
		close(p->mem);
	p->mem = -1;
}
