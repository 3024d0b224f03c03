/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a snapshot is going to cost, before anything is touched, and which kind it will be. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/limits.h"
#include "attach/procfs.h"
#include "attach/track.h"
#include "inject/sandbox.h"
#include "leaks/snapshot.h"

#define GIB ((double)(1ull << 30))

/*
 * The pause in milliseconds, per GiB of anonymous memory.  Small pages take 25 when they are in
 * physical order and 100 when they are scattered; nobody can tell which, so the geometric middle.
 */
#define MS_FIXED     1.0
#define MS_HUGE_GIB  1.0
#define MS_SMALL_GIB 50.0

/* Page tables are read in the stop, and what was written since, which is little by then. */
#define MS_PRE_FIXED 4.0
#define MS_PRE_GIB   3.0
#define LONG_NS	     100000000u /* a copy's pause, from where on another way is looked for */

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
	plan->copy_pause_ns = (uint64_t)(1e6 * (MS_FIXED + MS_HUGE_GIB * (double)plan->huge / GIB +
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

/* fork() would wait for the handler of one of its own. */
static int check_userfaultfd(const struct target *t, struct mp_err *err)
{
	if (!uses_userfaultfd(t->pid))
		return 0;
	return mp_fail(err, MP_EXIT_FAILURE, -EBUSY,
		       "process %d (%s) uses userfaultfd, so a copy could wait for its own "
		       "handler for ever; --pre-copy and --in-place work without a copy",
		       t->pid, t->status.name);
}

static int check_copy(const struct snapshot_plan *plan, const struct target *t, struct mp_err *err)
{
	uint64_t need = plan->tables + (plan->small + plan->huge) / COW_SHARE + SLACK;

	if (plan->room >= need)
		return 0;
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM,
		       "the memory cgroup of process %d has room for %" PRIu64
		       " KiB, and a copy may need %" PRIu64 " KiB; --in-place works without a copy",
		       t->pid, plan->room >> 10, need >> 10);
}

static int check_pre_copy(const struct snapshot_plan *plan, const struct target *t,
			  struct mp_err *err)
{
	uint64_t room = precopy_room();

	if (t->arch->nr.userfaultfd < 0 || !track_supported())
		return mp_fail(
		    err, MP_EXIT_FAILURE, -ENOSYS,
		    "this kernel cannot tell which pages are written (userfaultfd with "
		    "WP_ASYNC and PAGEMAP_SCAN, Linux 6.7), so --pre-copy does not work");
	if (room < plan->memory)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM,
			       "--pre-copy reads %" PRIu64 " MiB of process %d into memprof, and "
			       "only %" PRIu64 " MiB can be had; --in-place works without",
			       plan->memory >> 20, t->pid, room >> 20);
	return 0;
}

static uint64_t pause_of(const struct snapshot_plan *plan)
{
	double bytes = (double)(plan->small + plan->huge);

	switch (plan->mode) {
	case SNAPSHOT_IN_PLACE:
		/* Reading and following pointers, about 2 s a GiB. */
		return 20000000u + 2 * (plan->small + plan->huge);
	case SNAPSHOT_PRE_COPY:
		return (uint64_t)(1e6 * (MS_PRE_FIXED + MS_PRE_GIB * bytes / GIB));
	default:
		return plan->copy_pause_ns;
	}
}

/* Where nothing was asked for: a copy, unless it would take long, or may not be made. */
static int choose(struct snapshot_plan *plan, const struct target *t, uint64_t max_pause_ns,
		  struct mp_err *err)
{
	struct snapshot_plan other = *plan;
	struct mp_err why = {0};
	int ret = check_copy(plan, t, err);

	other.mode = SNAPSHOT_PRE_COPY;
	other.automatic = true;
	other.pause_ns = pause_of(&other);
	plan->mode = SNAPSHOT_COPY;
	if (!ret && plan->copy_pause_ns <= (max_pause_ns ? max_pause_ns : LONG_NS))
		return 0;
	if (other.pause_ns < plan->copy_pause_ns && !check_pre_copy(&other, t, &why)) {
		*plan = other;
		return 0;
	}
	return ret;
}

int snapshot_plan(struct snapshot_plan *plan, struct target *t, enum snapshot_mode mode,
		  uint64_t max_pause_ms, struct mp_err *err)
{
	struct limits limits;
	int ret;

	memset(plan, 0, sizeof(*plan));
	ret = read_rollup(t->pid, plan);
	if (ret)
		return target_refused(t, ret, err);
	ret = sandbox_look(t, err);
	if (ret)
		return ret;
	plan->room = limits_read(t->pid, &limits) ? NO_LIMIT : limits.cgroup;
	plan->mode = mode;
	plan->memory = plan->small + plan->huge;
	if (mode != SNAPSHOT_IN_PLACE && mode != SNAPSHOT_PRE_COPY)
		ret = check_userfaultfd(t, err);
	if (!ret && mode == SNAPSHOT_ANY)
		ret = choose(plan, t, max_pause_ms * 1000000, err);
	else if (!ret && mode == SNAPSHOT_PRE_COPY)
		ret = check_pre_copy(plan, t, err);
	else if (!ret && mode != SNAPSHOT_IN_PLACE)
		ret = check_copy(plan, t, err);
	if (plan->mode != SNAPSHOT_PRE_COPY)
		plan->memory = 0;
	plan->pause_ns = pause_of(plan);
	return ret;
}

const char *snapshot_mode_name(enum snapshot_mode mode)
{
	static const char *const name[] = {[SNAPSHOT_ANY] = "copy",
					   [SNAPSHOT_COPY] = "copy",
					   [SNAPSHOT_PRE_COPY] = "pre-copy",
					   [SNAPSHOT_GENTLE] = "gentle",
					   [SNAPSHOT_IN_PLACE] = "in-place"};

	return name[mode];
}
