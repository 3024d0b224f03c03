/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/runqueue.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "lib/deadline.h"

#define SLEEPS	 10
#define SLEEP_NS 1000000
#define LOOK_MS	 200

static uint64_t longest_wait(void)
{
	const struct timespec nap = {.tv_nsec = SLEEP_NS};
	struct deadline deadline = deadline_in_ms(LOOK_MS);
	uint64_t longest = 0;

	for (int i = 0; i < SLEEPS && !deadline_passed(&deadline); i++) {
		uint64_t begin = mono_ns(), ns;

		nanosleep(&nap, NULL);
		ns = mono_ns() - begin - SLEEP_NS;
		longest = ns > longest ? ns : longest;
	}
	return longest;
}

struct runqueue_load runqueue_look(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct runqueue_load load = {.processors = processors > 0 ? (uint32_t)processors : 1,
				     .wait_ns = longest_wait()};

	load.running = proc_load_read().running;
	if (load.running)
		load.running--; /* this thread */
	return load;
}

/* Second field of schedstat, see Documentation/scheduler/sched-stats.rst.  Return: false if it
 * cannot be read. */
static bool read_delay(pid_t pid, pid_t tid, uint64_t *ns)
{
	char path[64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%*u %" SCNu64, ns) == 1;
	fclose(f);
	return ok;
}

static void note(struct runqueue_delays *d, pid_t pid, pid_t tid)
{
	struct runqueue_delay delay = {.pid = pid, .tid = tid};

	if (read_delay(pid, tid, &delay.ns))
		ignore_result(vec_push(&d->list, delay));
}

void runqueue_begin(struct runqueue_delays *d, pid_t pid)
{
	struct tids tids;

	vec_free(&d->list);
	note(d, getpid(), (pid_t)syscall(SYS_gettid));
	if (proc_tasks(pid, &tids))
		return;
	vec_for_each (&tids.list, tid)
		note(d, pid, *tid);
	vec_free(&tids.list);
}

uint64_t runqueue_longest(struct runqueue_delays *d)
{
	uint64_t longest = 0, now;

	vec_for_each (&d->list, before) {
		if (read_delay(before->pid, before->tid, &now) && now > before->ns &&
		    now - before->ns > longest)
			longest = now - before->ns;
	}
	vec_free(&d->list);
	return longest;
}
