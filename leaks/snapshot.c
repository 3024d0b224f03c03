/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/emergency.h"
#include "attach/limits.h"
#include "attach/procfs.h"
#include "attach/remains.h"
#include "inject/sandbox.h"

#define GIB ((double)(1ull << 30))

/*
 * The pause in milliseconds, per GiB of anonymous memory.  Small pages take 25 when they are in
 * physical order and 100 when they are scattered; nobody can tell which, so the geometric middle.
 */
#define MS_FIXED     1.0
#define MS_HUGE_GIB  1.0
#define MS_SMALL_GIB 50.0

#define REAP_MS	  5000
#define SLACK	  (16ull << 20) /* of a memory cgroup: what the target itself may want */
#define COW_SHARE 64		/* 1/64 of the anonymous memory is written while a copy lives */

static int read_rollup(pid_t pid, struct snapshot_plan *plan)
{
	struct proc_rollup r;
	int err = proc_rollup_read(pid, &r);

	if (err)
		return err;
	plan->rss = r.rss;
	plan->huge = r.huge;
	plan->small = (r.anonymous > r.huge ? r.anonymous - r.huge : 0) + r.swap;
	/* A page of table for each 2 MiB, and for huge pages kept in reserve. */
	plan->tables = (plan->small + plan->huge) / 512;
	plan->pause_ns = (uint64_t)(1e6 * (MS_FIXED + MS_HUGE_GIB * (double)plan->huge / GIB +
					   MS_SMALL_GIB * (double)plan->small / GIB));
	return 0;
}

static bool uses_userfaultfd(pid_t pid)
{
	char path[64], target[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", proc_of(pid));
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = 0;
			found = strstr(target, "[userfaultfd]") != NULL;
		}
	}
	if (d)
		closedir(d);
	return found;
}

int snapshot_plan(struct snapshot_plan *plan, struct target *t, bool in_place, struct mp_err *err)
{
	struct limits limits;
	uint64_t need;
	int ret;

	memset(plan, 0, sizeof(*plan));
	plan->in_place = in_place;
	ret = read_rollup(t->pid, plan);
	if (ret)
		return target_refused(t, ret, err);
	ret = sandbox_look(t, err);
	if (ret)
		return ret;
	plan->room = limits_read(t->pid, &limits) ? NO_LIMIT : limits.cgroup;
	if (in_place) {
		/* Reading and following pointers, about 2 s a GiB. */
		plan->pause_ns = 20000000u + 2 * (plan->small + plan->huge);
		return 0;
	}
	if (uses_userfaultfd(t->pid))
		return mp_fail(err, MP_EXIT_FAILURE, -EBUSY,
			       "process %d (%s) uses userfaultfd, so a copy could wait for its own "
			       "handler for ever; --in-place works without a copy",
			       t->pid, t->status.name);
	need = plan->tables + (plan->small + plan->huge) / COW_SHARE + SLACK;
	if (plan->room < need)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM,
			       "the memory cgroup of process %d has room for %" PRIu64
			       " KiB, and a copy may need %" PRIu64
			       " KiB; --in-place works without a copy",
			       t->pid, plan->room >> 10, need >> 10);
	return 0;
}

/* Threads of the target compete for the processors that memprof needs to stop them. */
struct priority {
	int policy;
	struct sched_param param;
};

static void hurry(struct priority *old)
{
	struct sched_param fast = {.sched_priority = 1};

	old->policy = sched_getscheduler(0);
	sched_getparam(0, &old->param);
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fast);
}

static void take_time(const struct priority *old)
{
	sched_setscheduler(0, old->policy, &old->param);
}

static int stop(struct target *t, bool gentle, const struct deadline *deadline, struct mp_err *err)
{
	int ret = gentle ? target_seize_one(t, err) : target_seize(t, deadline, err);

	return ret ? ret : target_stop(t, deadline, err);
}

/* Threads that run on have no registers; that they live is what matters. */
static int add_running(struct image *img, pid_t pid)
{
	size_t stopped = img->threads.n;
	struct tids tids;
	int ret = proc_tasks(pid, &tids);

	if (ret)
		return ret;
	vec_for_each (&tids.list, tid) {
		struct image_thread th = {.tid = *tid};
		bool known = false;

		for (size_t i = 0; i < stopped; i++)
			known |= img->threads.at[i].tid == *tid;
		if (!known && !ret)
			ret = vec_push(&img->threads, th);
	}
	vec_free(&tids.list);
	return ret;
}

static int stop_and_copy(struct snapshot *s, const struct deadline *deadline, struct mp_err *err)
{
	int ret = stop(s->t, s->plan.gentle, deadline, err);

	if (ret)
		return ret;
	if (s->t->status.seccomp && !emergency_find(s->t))
		sandbox_wait_anew(s->t);
	if (s->t->execed)
		ret = mp_fail(err, MP_EXIT_FAILURE, -EAGAIN,
			      "process %d was just starting another program; try again", s->t->pid);
	s->taken_ns = mono_ns();
	if (!ret)
		ret = image_take_threads(&s->image, s->t);
	if (!ret && s->plan.gentle) {
		ret = add_running(&s->image, s->t->pid);
		s->image.torn = true;
	}
	if (!ret && !s->plan.in_place)
		ret = copy_make(&s->copy, s->t, err);
	if (ret || !s->plan.in_place) {
		target_release(s->t);
		s->pause_ns = s->t->last_stop_ns;
	}
	return ret;
}

int snapshot_take(struct snapshot *s, struct target *t, const struct snapshot_plan *plan,
		  uint64_t max_ms, struct mp_err *err)
{
	struct deadline deadline;
	struct priority old;
	int ret;

	memset(s, 0, sizeof(*s));
	s->t = t;
	s->plan = *plan;
	image_init(&s->image, t->arch, t->pid);
	if (maps_read(t->pid, &s->before))
		return target_refused(t, -ESRCH, err);
	emergency_find(t); /* what it finds is kept, and makes the stop shorter */
	if (!plan->in_place)
		guardian_start(&s->guardian, t->pid);
	deadline = deadline_in_ms(max_ms);
	hurry(&old);
	ret = stop_and_copy(s, &deadline, err);
	take_time(&old);
	if (!ret) {
		ret = image_open_process(&s->image, plan->in_place ? t->pid : s->copy.pid, err);
		if (!ret && !plan->in_place)
			ret = image_add_live(&s->image, &s->before);
		if (ret) {
			struct mp_err second = {0};

			snapshot_end(s, &second);
		}
	} else {
		guardian_end(&s->guardian);
		image_close(&s->image);
		maps_free(&s->before);
	}
	return ret;
}

/* @c: dead; or none, and only what others left is reaped. */
static int reap(struct target *t, struct copy *c, bool gentle, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(REAP_MS);
	struct priority old;
	int ret;

	hurry(&old);
	ret = stop(t, gentle, &deadline, err);
	if (!ret) {
		if (t->status.seccomp && !emergency_find(t))
			sandbox_wait_anew(t);
		ret = copy_reap(c, t, err);
		target_release(t);
	}
	take_time(&old);
	return ret;
}

int snapshot_end(struct snapshot *s, struct mp_err *err)
{
	int ret = 0;

	if (s->copy.pid) {
		copy_kill(&s->copy);
		ret = reap(s->t, &s->copy, s->plan.gentle, err);
		s->reap_pause_ns = s->t->last_stop_ns;
	} else if (s->t->threads.n) {
		target_release(s->t);
		s->pause_ns = s->t->last_stop_ns;
	}
	guardian_end(&s->guardian);
	image_close(&s->image);
	maps_free(&s->before);
	return ret;
}

int snapshot_clear(struct target *t, bool anyway, uint32_t *n, struct mp_err *err)
{
	struct copy none = {0};
	struct remains r;
	int ret;

	*n = 0;
	if (remains_find(t->pid, &r) || !(anyway || r.dead.list.n))
		return 0;
	ret = reap(t, &none, false, err);
	if (!ret)
		*n = (uint32_t)r.dead.list.n;
	remains_free(&r);
	return ret;
}
