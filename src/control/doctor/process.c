/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether one process can be recorded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/limits.h"
#include "attach/proc/namespace.h"
#include "control/doctor/findings.h"
#include "control/takeover.h"
#include "inject/find.h"
#include "lib/human.h"

/* Reads a small file of /proc/PID.  Return: its text, to be freed; NULL if it cannot be read. */
static char *read_text(pid_t pid, const char *name)
{
	char path[64], *text = NULL;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", proc_of(pid), name);
	fd = proc_open(path);
	if (fd < 0)
		return NULL;
	if (proc_slurp(fd, &text, NULL))
		text = NULL;
	close(fd);
	return text;
}

static void surroundings(struct notes *n, const struct target *t)
{
	bool user = namespace_is_other(t->pid, "user"), pid = namespace_is_other(t->pid, "pid"),
	     mnt = namespace_is_other(t->pid, "mnt");
	char *label = read_text(t->pid, "attr/current");

	if (label)
		label[strcspn(label, "\n")] = 0;
	note(n, VERDICT_OK, MP_EXIT_OK, "runs as", "", "uid %u, %s%s%s%s", t->status.uid,
	     counted(t->status.threads, "thread"),
	     user  ? ", in another user namespace (a container)"
	     : pid ? ", in another pid namespace (a container)"
	     : mnt ? ", in another mount namespace"
		   : "",
	     label && *label ? ", security label " : "", label && *label ? label : "");
	free(label);
}

/* Return: whether the process has no session, so that one can be planned. */
static bool no_session(struct notes *n, const struct target *t)
{
	struct session_id id;
	struct mp_err err = {0};

	if (!session_id_of(t->pid, &id)) {
		note(n, VERDICT_OK, MP_EXIT_OK, "session", "", "no memprof records it");
		return true;
	}
	if (session_refuse_recorder(t->pid, MP_EXIT_ATTACHED, &err))
		note_check(n, "session", &err, "", "");
	else if (session_is_forked(t->pid))
		note(n, VERDICT_WARNING, MP_EXIT_OK, "session", "",
		     "it was forked from a recorded process; attach removes what it has of that "
		     "session first");
	else if (session_is_orphan(t->pid))
		note(n, VERDICT_WARNING, MP_EXIT_OK, "session",
		     "memprof detach restores the process",
		     "its session has lost its recorder; attach continues it");
	else
		note(n, VERDICT_MISSING, MP_EXIT_ATTACHED, "session",
		     "memprof status shows it, memprof detach ends it",
		     "it already has a memprof session");
	return false;
}

static void locked_memory(struct notes *n, const struct target *t)
{
	uint64_t limit, locked = t->status.vm_locked_kb * 1024;
	char *text = locked ? read_text(t->pid, "limits") : NULL;

	if (!text)
		return;
	limit = limits_parse(text, "Max locked memory");
	free(text);
	note(n, limit == NO_LIMIT ? VERDICT_OK : VERDICT_WARNING, MP_EXIT_OK, "locked memory",
	     limit == NO_LIMIT ? "" : "raise its limit: prlimit --memlock=unlimited -p PID",
	     "it has locked %s (mlock), and its RLIMIT_MEMLOCK is %s%s", human(locked),
	     limit == NO_LIMIT ? "unlimited" : human(limit),
	     limit == NO_LIMIT ? ""
			       : "; after mlockall(MCL_FUTURE) the agent's memory has to fit, too");
}

/* The session needs a descriptor for a moment. */
static void descriptors(struct notes *n, const struct target *t)
{
	char path[64], *text = read_text(t->pid, "limits");
	uint64_t limit = text ? limits_parse(text, "Max open files") : NO_LIMIT, fd = 0;
	struct stat st;

	free(text);
	for (; fd < limit; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%llu", proc_of(t->pid),
			 (unsigned long long)fd);
		if (lstat(path, &st))
			break;
	}
	if (fd == limit)
		note(n, VERDICT_MISSING, MP_EXIT_NO_ROOM, "descriptors",
		     "raise its limit: prlimit --nofile=N -p PID",
		     "cannot map the agent into process %d: RLIMIT_NOFILE (it has no descriptor "
		     "left)",
		     t->pid);
}

static void examination(struct notes *n, struct target *t)
{
	struct examination *e = &n->d->examination;
	struct mp_err err = {0};
	char good[400];

	if (session_examine(t, e, &err)) {
		note_check(n, "allocator", &err, "", "");
		return;
	}
	n->d->examined = true;
	snprintf(good, sizeof(good), "%s; %s would be hooked", e->plan.allocators,
		 counted(e->plan.hooks.n, "function"));
	note_check(n, "allocator", &e->refused[EXAMINED_ALLOCATOR], "", good);
	note_check(n, "seccomp", &e->refused[EXAMINED_SANDBOX], "",
		   t->status.seccomp
		       ? "it has a filter; attach asks it about each call, and touches nothing if "
			 "it forbids one"
		       : "no filter");
	note_check(n, "shared memory", &e->refused[EXAMINED_SHARED], "",
		   "no other process shares its memory");
	note_check(n, "room", &e->refused[EXAMINED_ROOM], "raise the limit",
		   "its limits leave room for the session");
}

void doctor_hooks(struct notes *n)
{
	const struct examination *e = &n->d->examination;

	if (!n->d->examined || e->refused[EXAMINED_ALLOCATOR].exit)
		return;
	note_check(n, "hooks", &e->refused[EXAMINED_HOOKS], "--via=kernel needs no patches",
		   "the functions can be patched safely");
	if (e->plan.refused[0])
		note(n, VERDICT_WARNING, MP_EXIT_OK, "not hooked", "", "%s", e->plan.refused);
}

void doctor_process(struct notes *n, struct target *t)
{
	surroundings(n, t);
	if (no_session(n, t))
		examination(n, t);
	descriptors(n, t);
	locked_memory(n, t);
	doctor_modules(n, t);
}
