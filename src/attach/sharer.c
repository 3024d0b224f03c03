/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that share memory with a target but are not stopped with it. */
#include <dirent.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach/threads.h"

#define SHARED_MS 100 /* until the parent in vfork() is seen to wait */

static bool any_waits_in_vfork(const struct target *t)
{
	struct tids tids;
	bool waits = false;

	if (proc_tasks(t->pid, &tids))
		return true;
	vec_for_each (&tids.list, tid) {
		struct thread th = {.tid = *tid};

		waits = waits || thread_waits_in_vfork(t, &th);
	}
	vec_free(&tids.list);
	return waits;
}

/* False also if the kernel was built without kcmp(). */
static bool shares_memory(const struct target *t, pid_t pid)
{
	return !syscall(SYS_kcmp, proc_of(t->pid), pid, KCMP_VM, 0, 0);
}

pid_t target_sharer(const struct target *t)
{
	struct dirent *e;
	pid_t sharer = 0;
	DIR *d = opendir("/proc");

	while (!sharer && d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		int ms = 0;

		if (pid <= 0 || pid == t->pid)
			continue;
		while (ms < SHARED_MS && shares_memory(t, pid) && !any_waits_in_vfork(t)) {
			usleep(1000);
			ms++;
		}
		if (ms == SHARED_MS)
			sharer = pid;
	}
	if (d)
		closedir(d);
	return sharer;
}
