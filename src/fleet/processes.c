/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fleet/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/cgroups.h"
#include "attach/proc/namespace.h"
#include "attach/proc/process_name.h"
#include "attach/proc/procfs.h"
#include "model/filter/pattern.h"

/* --all leaves out what is younger: most new processes of a machine live shortly, and attaching costs more than a profile
 * of them is worth. */
#define YOUNG_NS 5000000000u
/* A process that was found not long ago often executes another program, so it is looked at in each scan. */
#define NEW_NS	      10000000000u
#define LOOK_AGAIN_NS 10000000000u
#define RETRY_NS      60000000000u
#define MOST_REFUSALS 3

/* ---------------------------------------------------------------------- filter -- */

static bool has_pid(const struct process_filter *f, pid_t pid)
{
	vec_for_each (&f->pid, p) {
		if (*p == pid)
			return true;
	}
	return false;
}

static bool has_name(const struct process_filter *f, pid_t pid)
{
	vec_for_each (&f->name, n) {
		if (process_has_name(pid, *n))
			return true;
	}
	return false;
}

/* Two recorders that record each other would wait for each other.  Another memprof can be in another container, where its file
 * has another path and is another file. */
static bool is_memprof(pid_t pid, const char *name)
{
	struct stat exe, own;
	char path[64];

	if (!strcmp(name, "memprof"))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat(path, &exe) && !stat("/proc/self/exe", &own) && exe.st_dev == own.st_dev &&
	       exe.st_ino == own.st_ino;
}

static bool is_small(pid_t pid, uint64_t min_rss)
{
	struct proc_memory m;

	return min_rss && (proc_memory_read(pid, &m) || m.rss < min_rss);
}

static bool in_cgroup(const struct process_filter *f, const struct cgroups *c)
{
	vec_for_each (&f->cgroup, path) {
		if (cgroups_in(c, *path))
			return true;
	}
	return !f->cgroup.n;
}

static enum left_out decide_by_cgroup(const struct process_filter *f, pid_t pid)
{
	char id[CGROUP_CONTAINER];
	enum left_out why = LEFT_OUT_NOT;
	struct cgroups c;

	if (!f->cgroup.n && !f->container)
		return LEFT_OUT_NOT;
	if (cgroups_read(pid, &c))
		return LEFT_OUT_NO_MEMORY;
	if (!in_cgroup(f, &c))
		why = LEFT_OUT_CGROUP;
	else if (f->container && (!cgroups_container(&c, id) ||
				  strncmp(id, f->container, strlen(f->container)) != 0))
		why = LEFT_OUT_CONTAINER;
	cgroups_free(&c);
	return why;
}

static bool is_young(uint64_t start, uint64_t now)
{
	return now < start * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)) + YOUNG_NS;
}

static bool is_init(pid_t pid)
{
	return pid == 1 && !namespace_is_inner("pid");
}

/* The kernel checks for opening this file what it checks for attaching. */
static bool may_trace(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = proc_open(path);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static enum left_out decide_by_process(const struct process *p, const struct process_filter *f,
				       const struct proc_status *st, uint64_t now)
{
	return is_small(p->pid, f->min_rss) ? LEFT_OUT_SMALL
	       : is_young(p->start, now)    ? LEFT_OUT_YOUNG
	       : is_init(p->pid)	    ? LEFT_OUT_INIT
	       : !may_trace(p->pid)	    ? LEFT_OUT_PERMISSION
	       : st->tracer		    ? LEFT_OUT_TRACED
					    : LEFT_OUT_NOT;
}

static enum left_out decide(const struct process *p, const struct process_filter *f,
			    const struct proc_status *st, uint64_t now)
{
	struct mp_err err = {0};
	enum left_out why;

	/* Attaching says why it cannot be recorded. */
	if (has_pid(f, p->pid))
		return LEFT_OUT_NOT;
	if (st->no_memory || st->state == 'Z' || st->state == 'X')
		return LEFT_OUT_NO_MEMORY;
	if (is_memprof(p->pid, st->name))
		return LEFT_OUT_MEMPROF;
	if (has_name(f, p->pid))
		return st->tracer ? LEFT_OUT_TRACED : LEFT_OUT_NOT;
	if (!f->all)
		return LEFT_OUT_OTHER;
	if (f->comm && pattern_find(f->comm, st->name, &err) != 1)
		return LEFT_OUT_COMM;
	why = decide_by_cgroup(f, p->pid);
	return why == LEFT_OUT_NOT ? decide_by_process(p, f, st, now) : why;
}

/* ------------------------------------------------------------------------ list -- */

static int by_pid(const void *a, const void *b)
{
	const pid_t p = ((const struct process *)a)->pid, q = ((const struct process *)b)->pid;

	return p < q ? -1 : p > q;
}

struct process *processes_find(const struct processes *p, pid_t pid)
{
	const struct process key = {.pid = pid};

	return vec_search(&p->list, &key, by_pid);
}

static bool is_due(const struct process *p, uint64_t now)
{
	return now - p->seen_ns < NEW_NS || now - p->looked_ns >= LOOK_AGAIN_NS ||
	       p->why == LEFT_OUT_TRACED;
}

/* Looks at a process.  Return: false: it has ended. */
static bool look_at_process(struct process *p, const struct process_filter *f, uint64_t now)
{
	const uint64_t start = proc_start_time(p->pid);
	struct proc_status st;

	if (!start || proc_status_read(p->pid, 0, &st))
		return false;
	if (start != p->start)
		*p = (struct process){.pid = p->pid, .start = start, .seen_ns = now, .here = true};
	if (p->use == PROCESS_REFUSED && strcmp(p->name, st.name)) {
		p->use = PROCESS_UNUSED;
		p->refusals = 0;
	}
	if (p->use == PROCESS_RETRIED && now - p->refused_ns >= RETRY_NS)
		p->use = PROCESS_UNUSED;
	snprintf(p->name, sizeof(p->name), "%s", st.name);
	p->looked_ns = now;
	p->why = p->use == PROCESS_USED ? LEFT_OUT_NOT : decide(p, f, &st, now);
	return true;
}

bool process_refuse(struct process *p, bool at_the_moment)
{
	p->refusals++;
	p->refused_ns = p->looked_ns;
	p->use = at_the_moment && p->refusals < MOST_REFUSALS ? PROCESS_RETRIED : PROCESS_REFUSED;
	return p->refusals == 1;
}

/* Those that are wanted, but not used: what cannot be recorded, and what is too much. */
static void leave_out(struct processes *p, uint32_t most)
{
	uint32_t used = 0;

	vec_for_each (&p->list, q)
		used += q->use == PROCESS_USED;
	vec_for_each (&p->list, q) {
		if (q->why == LEFT_OUT_MOST)
			q->why = LEFT_OUT_NOT;
		if (q->why != LEFT_OUT_NOT || q->use == PROCESS_USED)
			continue;
		if (q->use != PROCESS_UNUSED)
			q->why = LEFT_OUT_REFUSED;
		else if (used == most)
			q->why = LEFT_OUT_MOST;
		else
			used++;
	}
}

static int scan_proc(struct processes *p, uint64_t now)
{
	const size_t known = p->list.n;
	DIR *d = opendir("/proc");
	const struct dirent *e;
	int ret = 0;

	if (!d)
		return -errno;
	while (!ret && (e = readdir(d))) {
		struct process *old, fresh = {.seen_ns = now, .here = true};
		const struct process key = {
		    .pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0};

		if (!key.pid)
			continue;
		/* The new ones are behind those that are sorted. */
		old = known ? bsearch(&key, p->list.at, known, sizeof(key), by_pid) : NULL;
		fresh.pid = key.pid;
		if (old)
			old->here = true;
		else
			ret = vec_push(&p->list, fresh);
	}
	closedir(d);
	return ret;
}

int processes_scan(struct processes *p, const struct process_filter *f, uint32_t most, uint64_t now)
{
	size_t kept = 0;
	int ret;

	vec_for_each (&p->list, q)
		q->here = false;
	ret = scan_proc(p, now);
	for (size_t i = 0; i < p->list.n; i++) {
		struct process *q = &p->list.at[i];

		if (q->here && (!is_due(q, now) || look_at_process(q, f, now)))
			p->list.at[kept++] = *q;
	}
	p->list.n = kept;
	vec_sort(&p->list, by_pid);
	leave_out(p, most);
	return ret;
}

void processes_free(struct processes *p)
{
	vec_free(&p->list);
}

uint32_t processes_count(const struct processes *p, enum left_out why)
{
	uint32_t n = 0;

	vec_for_each (&p->list, q)
		n += q->why == why;
	return n;
}

static const struct {
	const char *word, *text;
} reasons[LEFT_OUT_REASONS] = {
    [LEFT_OUT_NOT] = {"wanted", "wanted"},
    [LEFT_OUT_NO_MEMORY] = {"kernel", "of the kernel or ending"},
    [LEFT_OUT_MEMPROF] = {"memprof", "memprof itself"},
    [LEFT_OUT_OTHER] = {"other", "not given by -p or -n"},
    [LEFT_OUT_COMM] = {"comm", "with a name that --comm does not match"},
    [LEFT_OUT_CGROUP] = {"cgroup", "not in the cgroup"},
    [LEFT_OUT_CONTAINER] = {"container", "not in the container"},
    [LEFT_OUT_SMALL] = {"min-rss", "smaller than --min-rss"},
    [LEFT_OUT_YOUNG] = {"young", "younger than 5 s"},
    [LEFT_OUT_INIT] = {"init", "the machine's init (-p 1 records it)"},
    [LEFT_OUT_PERMISSION] = {"permission", "without permission to trace them"},
    [LEFT_OUT_TRACED] = {"traced", "traced by another program at the moment"},
    [LEFT_OUT_REFUSED] = {"refused", "that cannot be recorded"},
    [LEFT_OUT_MOST] = {"most", "more than --most"},
};

const char *left_out_word(enum left_out why)
{
	return reasons[why].word;
}

const char *left_out_text(enum left_out why)
{
	return reasons[why].text;
}
