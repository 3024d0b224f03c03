/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "arch/arch.h"
#include "attach/proc/map_file.h"
#include "attach/proc/procfs.h"

int mem_open(struct mem *mem, pid_t pid)
{
	char path[64];

	mem->tid = 0;
	mem->pid = proc_of(pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", mem->pid);
	mem->fd = open(path, O_RDWR | O_CLOEXEC);
	if (mem->fd >= 0)
		return 0;
	if (errno == EMFILE || errno == ENFILE)
		return -errno;
	/* Reads nothing; only checks the permission. */
	return errno == EACCES && !process_vm_readv(mem->pid, NULL, 0, NULL, 0, 0) ? 0 : -EACCES;
}

static ssize_t get(const struct mem *mem, uint64_t addr, void *buf, size_t len)
{
	struct iovec here = {buf, len}, there = {(void *)(uintptr_t)addr, len};

	return mem->fd >= 0 ? pread(mem->fd, buf, len, (off_t)addr)
			    : process_vm_readv(mem->pid, &here, 1, &there, 1, 0);
}

static ssize_t put_vm(const struct mem *mem, uint64_t addr, const void *buf, size_t len)
{
	struct iovec here = {(void *)(uintptr_t)buf, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_writev(mem->pid, &here, 1, &there, 1, 0);
}

static ssize_t write_at(const struct mem *mem, uint64_t addr, const void *buf, size_t len)
{
	return mem->fd >= 0 ? pwrite(mem->fd, buf, len, (off_t)addr) : put_vm(mem, addr, buf, len);
}

void mem_close(struct mem *mem)
{
	if (mem->fd >= 0)
		close(mem->fd);
	mem->fd = -1;
}

ssize_t mem_read_some(const struct mem *mem, uint64_t addr, void *buf, size_t len)
{
	size_t n = 0;

	while (n < len) {
		ssize_t got = get(mem, addr + n, (char *)buf + n, len - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return n ? (ssize_t)n : got ? -errno : 0;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

int mem_read(const struct mem *mem, uint64_t addr, void *buf, size_t len)
{
	ssize_t got = mem_read_some(mem, addr, buf, len);

	if (got < 0)
		return (int)got;
	return (size_t)got == len ? 0 : -EIO;
}

/* Writes word by word through ptrace, for kernels where /proc/PID/mem cannot write to text. */
static int poke(const struct mem *mem, uint64_t addr, const uint8_t *buf, size_t len)
{
	while (len) {
		unsigned long word;
		uint64_t base = addr & ~(uint64_t)(sizeof(word) - 1);
		size_t skip = addr - base, left = sizeof(word) - skip, n = left < len ? left : len;
		int err = mem_read(mem, base, &word, sizeof(word));

		if (err)
			return err;
		memcpy((uint8_t *)&word + skip, buf, n);
		if (ptrace(PTRACE_POKEDATA, mem->tid, (void *)(uintptr_t)base, (void *)word))
			return -errno;
		addr += n;
		buf += n;
		len -= n;
	}
	return 0;
}

static int verify(const struct mem *mem, uint64_t addr, const uint8_t *buf, size_t len)
{
	uint8_t back[4096];

	while (len) {
		size_t n = len < sizeof(back) ? len : sizeof(back);
		int err = mem_read(mem, addr, back, n);

		if (err)
			return err;
		if (memcmp(back, buf, n))
			return -EIO;
		addr += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* Has this mapping room for an aligned huge page around @addr? */
static bool huge_fits(const struct map *m, uint64_t addr)
{
	/* bytes that one table of page table entries maps (Linux, PMD_SIZE) */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), huge = page * (page / sizeof(uint64_t));
	uint64_t start = addr & ~(huge - 1);

	return start >= m->start && start < m->end && m->end - start >= huge;
}

/* Writes to a private mapping of a file make copies in pages of ordinary size, unless the file is
 * in hugetlbfs. */
static bool is_small_file(pid_t pid, const struct map *m)
{
	int fd = m->ino && !m->shared ? map_open(pid, m) : -1;
	struct statfs fs;
	bool small;

	if (fd < 0)
		return false;
	small = !fstatfs(fd, &fs) && (unsigned long)fs.f_type != HUGETLBFS_MAGIC;
	close(fd);
	return small;
}

/* Is it certain that none of these bytes is executable memory in a huge page?  @len must be less
 * than the size of a huge page. */
static bool is_small(const struct mem *mem, uint64_t addr, size_t len)
{
	uint64_t end = addr + len;
	struct maps maps;
	bool small = !maps_read(mem->pid, &maps);

	if (!small)
		return false;
	while (small && addr < end) {
		const struct map *m = maps_find(&maps, addr);
		uint64_t stop = m && m->end < end ? m->end : end;

		small = m && (!m->exec || (!huge_fits(m, addr) && !huge_fits(m, stop - 1)) ||
			      is_small_file(mem->pid, m));
		addr = stop;
	}
	maps_free(&maps);
	return small;
}

int mem_write_text(const struct mem *mem, uint64_t addr, const void *buf, size_t len)
{
	ssize_t n;

	if (arch_native()->patch.huge_write_crashes && !is_small(mem, addr, len))
		return -ENOTSUP;
	n = write_at(mem, addr, buf, len);
	if (n < 0 || (size_t)n != len) {
		int err = n < 0 ? -errno : -EIO;

		if (!mem->tid)
			return err;
		err = poke(mem, addr, buf, len);
		if (err)
			return err;
	}
	return verify(mem, addr, buf, len);
}

int mem_write(const struct mem *mem, uint64_t addr, const void *buf, size_t len)
{
	ssize_t n;

	if (!arch_native()->patch.huge_write_crashes)
		return mem_write_text(mem, addr, buf, len);
	/* process_vm_writev() does not make the kernel flush caches, which is where it would crash.
	 * For data, the read-back is sufficient: get_user_pages() writes the kernel's view of a
	 * page back to memory. */
	n = put_vm(mem, addr, buf, len);
	if (n < 0 || (size_t)n != len)
		return n < 0 ? -errno : -EIO;
	return verify(mem, addr, buf, len);
}
