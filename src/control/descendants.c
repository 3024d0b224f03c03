/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/descendants.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/check.h"
#include "lib/deadline.h"

#define AGAIN_NS 50000000ull   /* until a process that could not be judged is examined again */
#define LOOK_NS	 1000000000ull /* between two scans of all processes, at most */

static bool listed(const struct follow *f, pid_t pid)
{
	vec_for_each (&f->seen, p) {
		if (*p == pid)
			return true;
	}
	vec_for_each (&f->members, m) {
		if (m->pid == pid || m->recorder == pid)
			return true;
	}
	vec_for_each (&f->waiting, p) {
		if (*p == pid)
			return true;
	}
	return false;
}

static bool is_member(const struct follow *f, pid_t pid)
{
	vec_for_each (&f->members, m) {
		if (m->pid == pid)
			return true;
	}
	return false;
}

int is_followed(const struct follow *f, pid_t pid)
{
	struct proc_status st;
	struct session_id id;

	if (proc_status_read(pid, 0, &st) || st.no_memory || check_ended(&st))
		return 0;
	if (!session_id_of(pid, &id))
		return f->o->follow_exec && is_member(f, st.ppid);
	vec_for_each (&f->members, m) {
		if (!m->has_id || !session_id_equal(&m->id, &id))
			continue;
		/* A vfork child shares its parent's memory until it execs. */
		return session_is_forked(pid) ? 1 : -1;
	}
	return -1; /* its parent's recorder might not have reported yet */
}

bool process_is_alive(pid_t pid)
{
	struct proc_status st;

	return !proc_status_read(pid, 0, &st) && !check_ended(&st);
}

bool scan_is_due(struct follow *f, uint64_t now)
{
	pid_t newest = proc_load_read().newest;
	bool changed = !newest || newest != f->newest;

	f->newest = newest;
	return changed || now - f->looked_ns >= (f->again ? AGAIN_NS : LOOK_NS);
}

/* Forgets members that are over and whose process is gone: the pid can be reused. */
static void forget_the_gone(struct follow *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->members.n; i++) {
		struct member *m = &f->members.at[i];
		bool gone = !m->root && m->over && !m->recorder && !process_is_alive(m->pid);

		if (!gone || (m->has_id && vec_push(&f->left, m->id)))
			f->members.at[kept++] = *m;
	}
	f->members.n = kept;
}

void find_descendants(struct follow *f)
{
	DIR *d = opendir("/proc");
	VEC(pid_t) seen = {0};
	struct dirent *e;

	f->looked_ns = mono_ns();
	f->again = false;
	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		int what;

		if (pid <= 0 || pid == getpid())
			continue;
		what = listed(f, pid) ? 0 : is_followed(f, pid);
		f->again |= what < 0;
		if (what > 0 && vec_push(&f->waiting, pid))
			break;
		if (!what && vec_push(&seen, pid))
			break;
	}
	if (d)
		closedir(d);
	/* Drops the pids of processes that are gone: they can be reused. */
	vec_free(&f->seen);
	memcpy(&f->seen, &seen, sizeof(seen));
	forget_the_gone(f);
}
