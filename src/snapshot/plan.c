/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Predicts the costs of a snapshot before the process is touched, and chooses its mode. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/limits.h"
#include "attach/proc/procfs.h"
#include "attach/sandbox.h"
#include "attach/track.h"
#include "lib/human.h"
#include "snapshot/snapshot.h"
#include "attach/steps.h"

#define GIB ((double)(1ull << 30))

/*
 * The pause in milliseconds per GiB of anonymous memory.  Small pages take 25 if they are in
 * physical order and 100 if they are scattered.  Which one is the case is not known, so this is the
 * geometric mean.
 */
#define MS_FIXED     1.0
#define MS_HUGE_GIB  1.0
#define MS_SMALL_GIB 50.0
#define MS_MAPPING   0.004 /* to copy it, and to read its line of maps */

/* The stop reads the page tables, and the few pages that were written since. */
#define MS_PRE_FIXED   4.0
#define MS_PRE_GIB     3.0
#define MS_PRE_MAPPING 0.0015
#define LONG_NS	       100000000u /* for a longer pause, another way than a copy is tried */

/* Reads memory and follows pointers, at about 2 s per GiB. */
#define MS_PLACE_FIXED	 20.0
#define MS_PLACE_GIB	 2000.0
#define MS_PLACE_MAPPING 0.0025

/*
 * For a busy machine: how often threads of the target must be scheduled one after the other to make
 * a copy (strace -f -e trace=ptrace memprof leaks -p PID), and the length of another thread's time
 * slice.
 */
#define TURNS	 11
#define SLICE_NS 4000000u

#define SLACK	  (16ull << 20) /* of a memory cgroup, left for the target */
#define COW_SHARE 64		/* 1/64 of anonymous memory is written while a copy exists */

static int read_sizes(pid_t pid, struct snapshot_plan *plan)
{
	struct proc_rollup r;
	struct maps maps;
	int err = proc_rollup_read(pid, &r);

	if (!err)
		err = maps_read(pid, &maps);
	if (err)
		return err;
	plan->mappings = (uint32_t)maps.list.n;
	maps_free(&maps);
	plan->rss = r.rss;
	plan->huge = r.huge;
	plan->small = (r.anonymous > r.huge ? r.anonymous - r.huge : 0) + r.swap;
	/* One page table for each 2 MiB; huge pages have one in reserve. */
	plan->tables = (plan->small + plan->huge) / 512;
	plan->copy_pause_ns = (uint64_t)(1e6 * (MS_FIXED + MS_HUGE_GIB * (double)plan->huge / GIB +
						MS_SMALL_GIB * (double)plan->small / GIB +
						MS_MAPPING * plan->mappings));
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

/* Refuses a copy if the process uses userfaultfd: fork() would wait for its own handler. */
static int check_userfaultfd(const struct target *t, struct mp_err *err)
{
	if (!uses_userfaultfd(t->pid))
		return 0;
	return mp_fail(err, MP_EXIT_FAILURE, -EBUSY,
		       "process %d (%s) uses userfaultfd, so fork() could wait forever for the "
		       "process's own handler; --pre-copy and --in-place work without a copy",
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
		return mp_fail(err, MP_EXIT_FAILURE, -ENOSYS,
			       "--pre-copy needs a kernel that reports written pages (userfaultfd "
			       "with WP_ASYNC and PAGEMAP_SCAN, Linux 6.7)");
	if (room < plan->memory)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM,
			       "--pre-copy needs %" PRIu64
			       " MiB of memory to read process %d, and only %" PRIu64
			       " MiB are available; --in-place does not need it",
			       plan->memory >> 20, t->pid, room >> 20);
	return 0;
}

static uint64_t pause_of(const struct snapshot_plan *plan)
{
	double gib = (double)(plan->small + plan->huge) / GIB;

	switch (plan->mode) {
	case SNAPSHOT_IN_PLACE:
		return (uint64_t)(1e6 * (MS_PLACE_FIXED + MS_PLACE_GIB * gib +
					 MS_PLACE_MAPPING * plan->mappings));
	case SNAPSHOT_PRE_COPY:
		return (uint64_t)(1e6 * (MS_PRE_FIXED + MS_PRE_GIB * gib +
					 MS_PRE_MAPPING * plan->mappings));
	default:
		return plan->copy_pause_ns;
	}
}

/* The upper estimate: the prediction for an idle machine is right within a factor of two. */
static uint64_t most_of(const struct snapshot_plan *plan)
{
	const struct runqueue_load *load = &plan->load;
	uint64_t wait = load->wait_ns,
		 queue = (uint64_t)SLICE_NS * load->running / load->processors;

	if (load->running > load->processors && queue > wait)
		wait = queue;
	return 2 * plan->pause_ns + TURNS * wait;
}

/* Chooses if no mode was requested: a copy, unless it would take long or must not be made. */
static int choose(struct snapshot_plan *plan, const struct target *t, struct mp_err *err)
{
	struct snapshot_plan other = *plan;
	struct mp_err why = {0};
	int ret = check_copy(plan, t, err);

	other.mode = SNAPSHOT_PRE_COPY;
	other.automatic = true;
	other.pause_ns = pause_of(&other);
	plan->mode = SNAPSHOT_COPY;
	if (!ret && plan->copy_pause_ns <= (plan->max_pause_ns ? plan->max_pause_ns : LONG_NS))
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
	ret = read_sizes(t->pid, plan);
	if (ret)
		return target_refused(t, ret, err);
	ret = sandbox_look(t, err);
	if (ret)
		return ret;
	plan->room = limits_read(t->pid, &limits) ? NO_LIMIT : limits.cgroup;
	plan->mode = mode;
	plan->max_pause_ns = max_pause_ms * 1000000;
	plan->memory = plan->small + plan->huge;
	if (mode != SNAPSHOT_IN_PLACE && mode != SNAPSHOT_PRE_COPY)
		ret = check_userfaultfd(t, err);
	if (!ret && mode == SNAPSHOT_ANY)
		ret = choose(plan, t, err);
	else if (!ret && mode == SNAPSHOT_PRE_COPY)
		ret = check_pre_copy(plan, t, err);
	else if (!ret && mode != SNAPSHOT_IN_PLACE)
		ret = check_copy(plan, t, err);
	if (plan->mode != SNAPSHOT_PRE_COPY)
		plan->memory = 0;
	plan->pause_ns = pause_of(plan);
	plan->load = runqueue_look();
	plan->pause_most_ns = most_of(plan);
	steps_add(t->steps,
		  "%s: %llu MiB in %u mapping%s, predicted pause %.1f ms, at most %.1f ms",
		  snapshot_mode_name(plan->mode), (unsigned long long)plan->rss >> 20,
		  plan->mappings, plural(plan->mappings), (double)plan->pause_ns / 1e6,
		  (double)plan->pause_most_ns / 1e6);
	return ret;
}

void snapshot_advice(const struct snapshot_plan *plan, const struct target *t, uint64_t ns,
		     char *text, size_t size)
{
	struct snapshot_plan other = *plan;

	other.mode = SNAPSHOT_PRE_COPY;
	other.pause_ns = pause_of(&other);
	snprintf(text, size, "--max-pause %" PRIu64 "ms", ns / 1000000 + ns / 4000000 + 1);
	if (plan->mode != SNAPSHOT_PRE_COPY && other.pause_ns < plan->max_pause_ns &&
	    !check_pre_copy(&other, t, NULL))
		snprintf(text + strlen(text), size - strlen(text),
			 " would be enough; or use --pre-copy, predicted to pause for %.1f ms",
			 (double)other.pause_ns / 1e6);
	else
		snprintf(text + strlen(text), size - strlen(text), " would be enough");
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
