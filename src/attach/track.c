/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/track.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach/proc/pagemap.h"
#include "lib/fault.h"

/* Linux 6.7: uapi linux/userfaultfd.h; Debian 12 has an older version of that header */
#define WP_UNPOPULATED (1u << 13)
#define WP_ASYNC       (1u << 15)
#define FEATURES       (UFFD_FEATURE_PAGEFAULT_FLAG_WP | WP_UNPOPULATED | WP_ASYNC)

/* UFFD_USER_MODE_ONLY needs no privilege, and in WP_ASYNC mode write faults in kernel mode work
 * too. */
#define FLAGS (O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)

/* The kernel holds the target's mmap_lock for one step: some milliseconds.  A multiple of every
 * huge page size, so that no huge page is split. */
#define STEP (64ull << 20)

#define DESCRIPTORS 4096 /* descriptors that are checked for a free one: less than 2 ms */

static int handshake(int uffd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};

	return ioctl(uffd, UFFDIO_API, &api) ? -errno : 0;
}

bool track_supported(void)
{
	struct pagemap_scan_arg nothing = {.size = sizeof(nothing)};
	int uffd = (int)syscall(SYS_userfaultfd, FLAGS);
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool ok =
	    uffd >= 0 && pagemap >= 0 && !handshake(uffd) && pagemap_scan(pagemap, &nothing) == 0;

	if (uffd >= 0)
		close(uffd);
	if (pagemap >= 0)
		close(pagemap);
	return ok;
}

static int check_seccomp(struct remote *r, const uint64_t args[6], struct mp_err *err)
{
	struct target *t = r->t;
	int make, drop;

	if (!t->status.seccomp)
		return 0;
	make = seccomp_allows(t, r->carrier, t->arch->nr.userfaultfd, args, t->code.syscall_return);
	drop = seccomp_allows(t, r->carrier, t->arch->nr.close, NULL, t->code.syscall_return);
	if (make == 1 && drop == 1)
		return 0;
	return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
		       make < 0 || drop < 0
			   ? "the seccomp filters of process %d cannot be read (needs "
			     "CAP_SYS_ADMIN), so memprof does not call userfaultfd() in it"
			   : "a seccomp filter of process %d forbids userfaultfd() or close()",
		       t->pid);
}

struct taking {
	struct track *k;
	int pidfd, fd;
};

/* The target's thread is at the entry of close(): if memprof ends now, the kernel executes the
 * call. */
static void take_uffd(void *ctx)
{
	struct taking *taking = ctx;

	taking->k->uffd = (int)syscall(SYS_pidfd_getfd, taking->pidfd, taking->fd, 0);
	if (taking->k->uffd < 0)
		taking->k->uffd = -errno;
	fault_point("track-taken");
}

static int get_descriptor(struct track *k, struct remote *r, struct mp_err *err)
{
	const uint64_t args[6] = {FLAGS};
	const struct arch *arch = r->t->arch;
	struct taking taking = {k, r->t->pidfd, -1};
	long fd = -1, result;
	int ret = check_seccomp(r, args, err);

	if (ret)
		return ret;
	ret = remote_syscall(r, arch->nr.userfaultfd, args, &fd);
	if (!ret && fd >= 0) {
		const uint64_t close_args[6] = {(uint64_t)fd};

		taking.fd = (int)fd;
		ret = remote_syscall_at_entry(r, arch->nr.close, close_args, &result, take_uffd,
					      &taking);
		fault_point("track-closed");
	}
	if (!ret)
		ret = fd < 0 ? (int)fd : k->uffd < 0 ? k->uffd : handshake(k->uffd);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret,
			     "the memory of process %d cannot be tracked: %s", r->t->pid,
			     strerror(-ret))
		   : 0;
}

/* The number that the stopped target's next descriptor gets; -1: unknown. */
static int next_descriptor(pid_t pid)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		if (syscall(SYS_kcmp, pid, pid, KCMP_FILE, fd, fd) < 0)
			return errno == EBADF ? fd : -1;
	}
	return -1;
}

/* The kernel executes an abandoned injected call when its thread resumes.  So this closes the
 * target's descriptor @fd if it is a userfaultfd by now.  Only the carrier has run since @fd was
 * free. */
static int close_left(struct target *t, int fd)
{
	static const char what[] = "anon_inode:[userfaultfd]";
	const uint64_t args[6] = {(uint64_t)fd};
	char path[64], to[64];
	struct remote r;
	long result = 0;
	int ret, ended;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc_of(t->pid), fd);
	n = fd < 0 ? -1 : readlink(path, to, sizeof(to));
	if (n != (ssize_t)strlen(what) || memcmp(to, what, strlen(what)))
		return 0;
	ret = remote_begin(&r, t, NULL);
	if (ret)
		return ret;
	ret = remote_syscall(&r, t->arch->nr.close, args, &result);
	ended = remote_end(&r);
	return ret ? ret : ended ? ended : (int)result;
}

int track_begin(struct track *k, struct target *t, struct mp_err *err)
{
	char path[64];
	struct remote r;
	int ret, next;

	memset(k, 0, sizeof(*k));
	k->uffd = -1;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", proc_of(t->pid));
	k->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (k->pagemap < 0)
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot read %s: %s", path,
			       strerror(errno));
	next = next_descriptor(proc_of(t->pid));
	ret = remote_begin(&r, t, err);
	if (!ret)
		ret = get_descriptor(k, &r, err);
	if (remote_end(&r) && !ret)
		ret = mp_fail(err, MP_EXIT_FAILURE, -EIO,
			      "the registers of a thread of process %d could not be restored",
			      t->pid);
	if (ret && close_left(t, next))
		ret = mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			      "process %d keeps descriptor %d, an unused userfaultfd() that "
			      "memprof made in it and could not close",
			      t->pid, next);
	if (ret)
		track_end(k);
	return ret;
}

int track_add(struct track *k, uint64_t start, uint64_t end)
{
	struct uffdio_register reg = {.range = {start, end - start},
				      .mode = UFFDIO_REGISTER_MODE_WP};

	if (ioctl(k->uffd, UFFDIO_REGISTER, &reg))
		return -errno;
	fault_point("track-added");
	for (size_t i = 0; i < k->ranges.n;) {
		if (start <= k->ranges.at[i].start && k->ranges.at[i].end <= end)
			k->ranges.at[i] = k->ranges.at[--k->ranges.n];
		else
			i++;
	}
	return vec_push(&k->ranges, ((struct track_range){start, end}));
}

bool track_has(const struct track *k, uint64_t start, uint64_t end)
{
	vec_for_each (&k->ranges, r) {
		if (r->start <= start && end <= r->end)
			return true;
	}
	return false;
}

static uint64_t step_end(uint64_t at, uint64_t end)
{
	uint64_t next = (at / STEP + 1) * STEP;

	return next < end ? next : end;
}

/* Checking whether a page belongs to a file reads its struct page, one cache miss each: not
 * requested where all pages are anonymous. */
static uint64_t asked(const struct track *k, uint64_t at, uint64_t end, bool protect)
{
	if (protect)
		return TRACK_WRITTEN;
	return TRACK_ALLOWED | TRACK_WRITTEN | (track_has(k, at, end) ? 0 : TRACK_FILE);
}

long track_scan(struct track *k, uint64_t *at, uint64_t end, bool protect, struct track_run *runs,
		size_t n)
{
	struct pagemap_scan_arg arg = {.size = sizeof(arg),
				       .flags = protect ? PAGEMAP_SCAN_PROTECT : 0,
				       .start = *at,
				       .end = protect ? step_end(*at, end) : end,
				       .vec = (uint64_t)(uintptr_t)runs,
				       .vec_len = n,
				       .category_mask = protect ? TRACK_WRITTEN : 0,
				       .category_anyof_mask = TRACK_PRESENT | TRACK_SWAPPED,
				       .return_mask = asked(k, *at, end, protect)};
	long ret = pagemap_scan(k->pagemap, &arg);

	if (ret >= 0)
		*at = arg.walk_end;
	return ret;
}

uint64_t track_next(struct track *k, uint64_t at, uint64_t end)
{
	struct track_run one = {.start = end};
	struct pagemap_scan_arg arg = {.size = sizeof(arg),
				       .start = at,
				       .end = end,
				       .vec = (uint64_t)(uintptr_t)&one,
				       .vec_len = 1,
				       .max_pages = 1,
				       .category_anyof_mask = TRACK_PRESENT | TRACK_SWAPPED,
				       .return_mask = TRACK_PRESENT};
	long n = pagemap_scan(k->pagemap, &arg);

	return n < 0 ? at : one.start;
}

void track_forget(struct track *k, uint64_t start, uint64_t end)
{
	struct uffdio_writeprotect wp = {.range = {start, end - start}};

	/* Fails where memory is no longer tracked, which counts as written anyway. */
	ioctl(k->uffd, UFFDIO_WRITEPROTECT, &wp);
}

void track_end(struct track *k)
{
	vec_for_each (&k->ranges, r) {
		struct uffdio_range range = {r->start, r->end - r->start};

		for (uint64_t at = r->start, next; at < r->end; at = next) {
			at = track_next(k, at, r->end);
			next = step_end(at, r->end);
			if (at < next)
				track_forget(k, at, next);
		}
		/* If the descriptor is only closed, kernels before 6.9 leave marks in the page
		 * tables. */
		ioctl(k->uffd, UFFDIO_UNREGISTER, &range);
	}
	vec_free(&k->ranges);
	if (k->uffd >= 0)
		close(k->uffd);
	if (k->pagemap >= 0)
		close(k->pagemap);
	k->uffd = k->pagemap = -1;
}
