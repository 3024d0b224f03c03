/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens perf events for probes; see perf_event_open(2) and linux/perf_event.h. */
#include "record/kernel/probes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "record/kernel/tracefs.h"

#define ALL_RINGS	  (512ull << 20)
#define MAX_RING	  (64ull << 20)
#define MIN_RING	  (1ull << 20)
#define UNPRIVILEGED_RING (512ull << 10) /* default of kernel.perf_event_mlock_kb */
#define MAX_EVENTS	  200000u	 /* descriptors: threads x processors x probes */

/* -------------------------------------------------------------------------------- opening -- */

static int perf_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void common_attr(const struct probes *p, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->inherit = 1;
	attr->read_format = p->counts_lost ? PERF_FORMAT_LOST : 0;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(p->ring_bytes / 8);
}

/* Creates the ring of one processor.  It is owned by an event that only reports threads that
 * exit. */
static int open_cpu(struct probes *p, int cpu)
{
	struct perf_event_attr attr;
	struct cpu c = {.cpu = cpu};
	void *map = MAP_FAILED;
	int ret = 0;

	common_attr(p, &attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	attr.task = 1;
	c.fd = perf_open(&attr, p->pid, cpu);
	if (c.fd == -EINVAL && p->counts_lost) { /* before Linux 6.0 */
		p->counts_lost = false;
		return open_cpu(p, cpu);
	}
	/* Processor is off line */
	if (c.fd < 0)
		return c.fd == -ENODEV ? 0 : c.fd;
	c.buf = malloc(2 * p->ring_bytes);
	if (c.buf)
		map = mmap(NULL, p->ring_length, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
	if (map == MAP_FAILED) {
		ret = c.buf ? -errno : -ENOMEM;
	} else {
		c.ring =
		    ring_of(map, (uint8_t *)map + (p->ring_length - p->ring_bytes), p->ring_bytes);
		ret = vec_push(&p->cpus, c);
		if (!ret)
			return 0;
		munmap(map, p->ring_length);
	}
	close(c.fd);
	free(c.buf);
	return ret;
}

static int explain(int error, struct mp_err *err)
{
	if (error == -EACCES || error == -EPERM)
		return mp_fail(err, MP_EXIT_PERMISSION, error,
			       "the kernel does not permit probes: CAP_PERFMON or root is needed "
			       "(a lower kernel.perf_event_paranoid is not enough)");
	if (error == -EOPNOTSUPP || error == -ENOSYS || error == -EINVAL)
		return mp_fail(err, MP_EXIT_KERNEL, error,
			       "this kernel does not support user registers and stacks in samples "
			       "(perf_event_open: %s); on MIPS before Linux 5.12 it needs the "
			       "patches in kernel-patches/",
			       strerror(-error));
	if (error == -EMFILE || error == -ENFILE)
		return mp_fail(err, MP_EXIT_FAILURE, error,
			       "out of file descriptors: recording by the kernel needs one for "
			       "each thread, processor and probe; raise ulimit -n");
	return mp_fail(err, MP_EXIT_FAILURE, error, "cannot open kernel probes: %s",
		       strerror(-error));
}

/* Explains why no perf event can be opened at all. */
static int explain_open(int error, struct mp_err *err)
{
	if (error == -ENOSYS)
		return mp_fail(err, MP_EXIT_KERNEL, error,
			       "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	return explain(error, err);
}

static uint64_t default_ring(long cpus)
{
	uint64_t ring = MAX_RING;

	while (ring > MIN_RING && ring * (uint64_t)cpus > ALL_RINGS)
		ring /= 2;
	return ring;
}

static void close_cpus(struct probes *p)
{
	vec_for_each (&p->cpus, c) {
		munmap(c->ring.page, p->ring_length);
		close(c->fd);
		free(c->buf);
	}
	p->cpus.n = 0;
}

static int open_cpus(struct probes *p, uint64_t ring_bytes)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
	int ret = 0;

	p->ring_bytes = ring_bytes;
	p->ring_length = ring_bytes + (size_t)page;
	for (long i = 0; i < cpus && !ret; i++)
		ret = open_cpu(p, (int)i);
	return !ret && !p->cpus.n ? -ENODEV : ret;
}

int probes_open(pid_t pid, const struct arch *arch, uint64_t ring_bytes, struct probes **out,
		struct mp_err *err)
{
	struct probes *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return explain(-ENOMEM, err);
	p->pid = pid;
	p->arch = arch;
	p->tracefs = -1;
	p->counts_lost = true;
	ret = open_cpus(p, ring_bytes ? ring_bytes : default_ring(sysconf(_SC_NPROCESSORS_CONF)));
	if (ret == -EPERM && !ring_bytes) {
		close_cpus(p);
		ret = open_cpus(p, UNPRIVILEGED_RING);
	}
	if (ret) {
		probes_close(p);
		return explain_open(ret, err);
	}
	*out = p;
	return 0;
}

static int open_event(struct probes *p, struct perf_event_attr *attr, pid_t tid,
		      const struct cpu *cpu, uint32_t point)
{
	struct event e = {.point = point};
	int ret = 0;

	if (p->events.n >= MAX_EVENTS)
		return -EMFILE;
	e.fd = perf_open(attr, tid, cpu->cpu);
	if (e.fd < 0)
		return e.fd == -ESRCH ? 0 : e.fd;
	if (ioctl(e.fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) ||
	    ioctl(e.fd, PERF_EVENT_IOC_ID, &e.id))
		ret = -errno;
	if (!ret)
		ret = vec_push(&p->events, e);
	if (ret)
		close(e.fd);
	return ret;
}

static void point_attr(const struct probes *p, const struct point *pt, struct perf_event_attr *attr)
{
	common_attr(p, attr);
	attr->type = pt->type;
	attr->config = pt->config;
	attr->sample_period = 1;
	/* Only the first point reports exit and exec, so that they are reported once per thread. */
	attr->task = attr->comm = attr->comm_exec = pt == p->points.at;
	attr->disabled = 1;
	attr->sample_type |= PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = p->arch->perf.regs_mask;
	if (pt->stack_bytes) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = pt->stack_bytes;
	}
	if (pt->kind != PROBE_FAULT)
		return;
	attr->sample_type |= PERF_SAMPLE_ADDR;
	if (p->page_sizes)
		attr->sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
	attr->exclude_kernel = p->user_only;
}

static int open_point(struct probes *p, uint32_t point, pid_t tid)
{
	struct perf_event_attr attr;
	int ret = 0;

	point_attr(p, &p->points.at[point], &attr);
	vec_for_each (&p->cpus, cpu) {
		ret = open_event(p, &attr, tid, cpu, point);
		if (ret)
			break;
	}
	return ret;
}

static bool has_tid(const struct probes *p, pid_t tid)
{
	vec_for_each (&p->tids, t) {
		if (*t == tid)
			return true;
	}
	return false;
}

static int open_threads(struct probes *p, uint32_t first)
{
	p->tids.n = 0;
	for (bool fresh = true; fresh;) {
		struct tids now;
		int ret = proc_tasks(p->pid, &now);

		if (ret)
			return ret;
		fresh = false;
		vec_for_each (&now.list, tid) {
			if (has_tid(p, *tid))
				continue;
			fresh = true;
			ret = vec_push(&p->tids, *tid);
			for (uint32_t i = first; i < p->points.n && !ret; i++)
				ret = open_point(p, i, *tid);
			if (ret)
				break;
		}
		vec_free(&now.list);
		if (ret)
			return ret;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t lost_by(int fd)
{
	uint64_t value[2];

	return read(fd, value, sizeof(value)) == (ssize_t)sizeof(value) ? value[1] : 0;
}

uint64_t probes_lost(const struct probes *p)
{
	uint64_t sum = 0;

	if (!p->counts_lost)
		return 0;
	vec_for_each (&p->cpus, c)
		sum += lost_by(c->fd);
	vec_for_each (&p->events, e)
		sum += lost_by(e->fd);
	return sum;
}

const struct event *probes_event(const struct probes *p, uint64_t id)
{
	struct event key = {.id = id};

	return vec_search(&p->events, &key, by_id);
}

/* Opens and enables the points from @first on for all threads. */
static int start_points(struct probes *p, uint32_t first)
{
	size_t events = p->events.n;
	int ret = open_threads(p, first);

	if (ret)
		return ret;
	/* Events that new threads inherited in the meantime are enabled with their parents. */
	for (size_t i = events; i < p->events.n; i++)
		ioctl(p->events.at[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	vec_sort(&p->events, by_id);
	return 0;
}

static int want_tracefs(struct probes *p, struct mp_err *err)
{
	int ret = 0;

	if (p->tracefs < 0)
		ret = p->tracefs = tracefs_open();
	if (ret == -EPERM || ret == -EACCES)
		return explain(ret, err);
	if (ret < 0)
		return mp_fail(err, MP_EXIT_KERNEL, -ENOENT,
			       "this kernel has no uprobe events (CONFIG_UPROBE_EVENTS)");
	return 0;
}

int probes_add(struct probes *p, const struct probe_point *point, uint32_t n, struct mp_err *err)
{
	uint32_t first = (uint32_t)p->points.n;
	int ret = want_tracefs(p, err);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < n && !ret; i++) {
		struct point pt = {.kind = point[i].at_return ? PROBE_RETURN : PROBE_ENTRY,
				   .hook = point[i].hook,
				   .stack_bytes = point[i].stack_bytes,
				   .type = PERF_TYPE_TRACEPOINT};
		int id = tracefs_add(p->tracefs, &pt.number, point[i].path, point[i].offset,
				     point[i].at_return);

		pt.config = (uint64_t)id;
		ret = id < 0 ? id : vec_push(&p->points, pt);
	}
	if (!ret)
		ret = start_points(p, first);
	return ret ? explain(ret, err) : 0;
}

bool probes_user_only(pid_t pid)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
				       .disabled = 1};
	int fd = perf_open(&attr, pid, -1);

	if (fd >= 0)
		close(fd);
	return fd == -EACCES || fd == -EPERM;
}

/* Return: whether samples can include the page size (since Linux 5.11). */
static bool tells_page_sizes(struct probes *p, const struct point *pt)
{
	struct perf_event_attr attr;
	int fd;

	p->page_sizes = true;
	point_attr(p, pt, &attr);
	fd = perf_open(&attr, p->pid, p->cpus.at[0].cpu);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int probes_add_faults(struct probes *p, uint32_t stack_bytes, bool user_only, struct mp_err *err)
{
	struct point pt = {
	    .kind = PROBE_FAULT, .stack_bytes = stack_bytes, .type = PERF_TYPE_SOFTWARE};
	uint32_t first = (uint32_t)p->points.n;
	int ret;

	/* Minor and major faults are reported after the page is mapped, when its size is known,
	 * unlike PERF_COUNT_SW_PAGE_FAULTS. */
	pt.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	p->user_only = user_only;
	p->page_sizes = tells_page_sizes(p, &pt);
	ret = vec_push(&p->points, pt);
	pt.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	pt.is_major = true;
	if (!ret)
		ret = vec_push(&p->points, pt);
	if (!ret)
		ret = start_points(p, first);
	return ret ? explain(ret, err) : 0;
}

void probes_close(struct probes *p)
{
	if (!p)
		return;
	vec_for_each (&p->events, e)
		close(e->fd);
	vec_for_each (&p->points, pt) {
		if (pt->type == PERF_TYPE_TRACEPOINT)
			tracefs_remove(p->tracefs, pt->number);
	}
	if (p->tracefs >= 0)
		close(p->tracefs);
	close_cpus(p);
	vec_free(&p->events);
	vec_free(&p->cpus);
	vec_free(&p->points);
	vec_free(&p->tids);
	free(p->teller);
	free(p);
}
