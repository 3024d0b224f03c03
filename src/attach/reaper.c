/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/reaper.h"

#include <signal.h>
#include <unistd.h>
#include "attach/proc/stat.h"

/* Some reapers wait for their orphans by polling. */
#define KEPT_MS 5000

/* A zombie that was killed before it executed anything can only be a copy. */
static bool is_kept_copy(pid_t pid)
{
	struct proc_stat st;

	return !proc_stat_read(pid, &st) && st.state == 'Z' &&
	       (st.field[STAT_EXIT_CODE] & 0x7f) == SIGKILL && !st.field[STAT_MINFLT] &&
	       !st.field[STAT_MAJFLT] && proc_stat_age_ms(&st) > KEPT_MS;
}

static bool keeps_copies(pid_t pid)
{
	struct tids children;
	bool keeps = false;

	if (proc_children(pid, &children))
		return true;
	vec_for_each (&children.list, child) {
		keeps = is_kept_copy(*child);
		if (keeps)
			break;
	}
	vec_free(&children.list);
	return keeps;
}

static bool cares(pid_t pid, const struct proc_status *status)
{
	uint64_t sigchld = 1ull << (SIGCHLD - 1);
	struct proc_stat st;

	if ((status->sig_ignored | status->sig_caught | status->sig_blocked) & sigchld)
		return true;
	return !proc_stat_read(pid, &st) && (st.field[STAT_CMINFLT] || st.field[STAT_CMAJFLT]);
}

bool reaper_waits(const struct target *t)
{
	pid_t pid = t->status.ppid;
	struct proc_status st;

	if (t->status.ns_pid == 1)
		return false;
	/* The kernel does not show the parent of a process that entered memprof's namespace by
	 * setns(). */
	if (!pid && t->status.nstgid == 1)
		pid = 1;
	for (;;) {
		if (!pid || proc_status_read(pid, 0, &st) || st.nstgid != t->status.nstgid ||
		    keeps_copies(pid))
			return false;
		if (st.ns_pid == 1)
			return cares(pid, &st);
		pid = st.ppid ? st.ppid : st.nstgid == 1 ? 1 : 0;
	}
}
