/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The init of a small guest: does this kernel give user registers and stack with samples, and are
 * they right; do return probes see longjmp(); may a debugger write to huge pages?  Prints TAP on
 * the console and powers the machine off.  What is expected is told by the kernel command line:
 * expect=stock or expect=patched.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "event.h"
#include "marked.h"
#include "remote.h"

#define STATIC_REGS 0x40ff0000ull
#define KERNEL_REGS 0x0c000000ull

static int tests, failures;

static void __attribute__((format(printf, 2, 3))) result(bool good, const char *format, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tests);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	failures += !good;
}

static void fill(uint64_t table[32])
{
	for (uint64_t i = 0; i < 32; i++)
		table[i] = 0x1234500067890000ull + i * 0x0000001100000101ull;
	table[26] = table[27] = 0;
}

static int differing(const struct sample *s, const uint64_t table[32], uint64_t mask)
{
	int wrong = 0;

	for (int i = 0; i < 32; i++) {
		if (!(mask >> i & 1) || s->reg[i] == table[i])
			continue;
		printf("# register %d: %#llx, should be %#llx\n", i, (unsigned long long)s->reg[i],
		       (unsigned long long)table[i]);
		wrong++;
	}
	return wrong;
}

/* ------------------------------------------------------------------- what the kernel accepts -- */

static int try_open(struct perf_event_attr attr)
{
	struct event e;
	int ret = event_open(&e, &attr, 0);

	if (!ret)
		event_close(&e);
	return ret;
}

static void test_accepted(int expected)
{
	struct perf_event_attr clock = event_software(PERF_COUNT_SW_CPU_CLOCK, 1000000, 8192);
	struct perf_event_attr regs = event_software(PERF_COUNT_SW_CPU_CLOCK, 1000000, 0);
	struct perf_event_attr probe = event_probe(marked_probe, false, true, 8192);
	struct perf_event_attr plain = event_probe(marked_probe, false, false, 0);
	int ret;

	ret = try_open(regs);
	result(ret == expected, "registers with a clock event: %s (%d)", strerror(-ret), -ret);
	clock.sample_type &= ~(uint64_t)PERF_SAMPLE_REGS_USER;
	ret = try_open(clock);
	result(ret == expected, "stack with a clock event: %s (%d)", strerror(-ret), -ret);
	ret = try_open(probe);
	result(ret == expected, "both with a probe: %s (%d)", strerror(-ret), -ret);
	ret = try_open(plain);
	result(!ret, "a probe without them: %s (%d)", strerror(-ret), -ret);
	regs.sample_regs_user = 1ull << 32;
	ret = try_open(regs);
	result(ret == (expected ? expected : -EINVAL), "a register that does not exist: %s (%d)",
	       strerror(-ret), -ret);
}

/* --------------------------------------------------------------------------------- registers -- */

/* The table lies on the stack itself. */
static bool stack_right(const struct sample *s, const uint64_t table[32])
{
	uint64_t at = (uintptr_t)table - s->reg[29];

	if (at + 256 <= s->stack_bytes && !memcmp(s->stack + at, table, 256))
		return true;
	printf("# %llu bytes of stack, the table at %llu\n", (unsigned long long)s->stack_bytes,
	       (unsigned long long)at);
	return false;
}

static void __attribute__((noinline)) test_probe(uint32_t stack_bytes)
{
	struct perf_event_attr attr = event_probe(marked_probe, false, true, stack_bytes);
	uint64_t table[32], expected[32];
	int seen = 0, wrong = 0;
	struct sample s;
	struct event e;
	int ret = event_open(&e, &attr, 0);

	if (ret) {
		result(false, "probe: %s", strerror(-ret));
		return;
	}
	fill(table);
	memcpy(expected, table, sizeof(expected));
	for (int i = 0; i < 20; i++)
		wrong += marked_call(table) != 7;
	expected[0] = table[0], expected[29] = table[29], expected[31] = table[31];
	for (; event_next(&e, &s); seen++) {
		wrong += differing(&s, expected, ALL_REGS) + (s.ip != table[0]);
		wrong += s.abi != PERF_SAMPLE_REGS_ABI_64;
		wrong += !stack_right(&s, table);
		/* A sample has 64 KiB with all that is in it. */
		wrong += s.stack_bytes < (stack_bytes < 65000 ? stack_bytes : 65000);
	}
	result(seen == 20 && !wrong, "probe, %u bytes of stack: %d of 20 samples, %d wrong",
	       stack_bytes, seen, wrong);
	result(event_count(&e) == 20, "probe counts: %llu of 20",
	       (unsigned long long)event_count(&e));
	event_close(&e);
}

static void __attribute__((noinline)) test_clock(void)
{
	struct perf_event_attr attr = event_software(PERF_COUNT_SW_CPU_CLOCK, 1000000, 8192);
	int seen = 0, within = 0, wrong = 0;
	uint64_t table[32];
	struct sample s;
	struct event e;
	int ret = event_open(&e, &attr, 0);

	if (ret) {
		result(false, "clock: %s", strerror(-ret));
		return;
	}
	fill(table);
	/* However seldom the machine lets its guest run. */
	for (int i = 0; i < 1000 && within <= 10; i++) {
		marked_spin(table, 2000000);
		for (; event_next(&e, &s); seen++) {
			if (s.reg[0] < (uintptr_t)marked_spin_loop ||
			    s.reg[0] >= (uintptr_t)marked_spin_end)
				continue;
			within++;
			wrong += differing(&s, table, STATIC_REGS | KERNEL_REGS | 1ull << 29);
			wrong += !stack_right(&s, table);
		}
	}
	result(within > 10 && !wrong, "clock: %d samples, %d in the loop, %d of them wrong", seen,
	       within, wrong);
	event_close(&e);
}

/* ------------------------------------------------------------------------- in a system call -- */

#define PAGES 32

/* read() into pages that are not there yet: the kernel faults, in a system call. */
static void test_syscall(void)
{
	struct perf_event_attr attr = event_software(PERF_COUNT_SW_PAGE_FAULTS, 1, 0);
	long page = sysconf(_SC_PAGESIZE);
	int in_kernel = 0, wrong = 0, leaked = 0;
	uint64_t table[32];
	struct sample s;
	struct event e;
	int zero[2], ret = event_open(&e, &attr, 0);
	char *fresh = mmap(NULL, (size_t)(PAGES * page), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ret || fresh == MAP_FAILED || pipe(zero)) {
		result(false, "page faults: %s", strerror(ret ? -ret : errno));
		return;
	}
	fill(table);
	for (long i = 0; i < PAGES; i++) {
		if (write(zero[1], &i, sizeof(i)) != sizeof(i) ||
		    marked_syscall(table, SYS_read, zero[0], (long)(fresh + i * page), 8) != 8)
			wrong++;
	}
	while (event_next(&e, &s)) {
		if (s.reg[0] < (uintptr_t)marked_syscall || s.reg[29] != table[29])
			continue;
		in_kernel++;
		for (int i = 0; i < 32; i++) {
			if (!(STATIC_REGS >> i & 1) || !s.reg[i] || s.reg[i] == table[i])
				continue;
			if (!leaked++)
				printf("# register %d: %#llx\n", i, (unsigned long long)s.reg[i]);
		}
	}
	result(in_kernel >= PAGES && !wrong && !leaked,
	       "faults in system calls: %d samples, %d errors, %d values not of user space",
	       in_kernel, wrong, leaked);
	event_close(&e);
	munmap(fresh, (size_t)(PAGES * page));
	close(zero[0]), close(zero[1]);
}

/* ---------------------------------------------------------------------------------- longjmp -- */

static int __attribute__((noinline)) inner(jmp_buf *to, bool leave)
{
	if (leave)
		longjmp(*to, 1);
	return 1;
}

static int __attribute__((noinline)) outer(void)
{
	jmp_buf to;

	if (!setjmp(to))
		return inner(&to, true) + 1;
	return 7;
}

static void left_often(void)
{
	jmp_buf to;

	for (volatile int i = 0; i < 100; i++)
		if (!setjmp(to))
			inner(&to, true);
	for (int i = 0; i < 10; i++)
		inner(&to, false);
}

/* Runs @body in a child with return probes on inner(), and on outer() if @both. */
static int in_child(int (*body)(void), bool both, uint64_t *returns)
{
	struct perf_event_attr attr[2] = {event_probe(inner, true, false, 0),
					  event_probe(outer, true, false, 0)};
	struct event e[2];
	int go[2], status = -1, ret = pipe(go) ? -errno : 0;
	pid_t pid = fork();
	char byte = 0;

	if (!pid) {
		alarm(20);
		_exit(read(go[0], &byte, 1) == 1 ? body() : 99);
	}
	for (int i = 0; i <= both && !ret; i++)
		ret = event_open(&e[i], &attr[i], pid);
	if (ret || write(go[1], &byte, 1) != 1)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	*returns = 0;
	for (int i = 0; i <= both && !ret; i++) {
		*returns += event_count(&e[i]);
		event_close(&e[i]);
	}
	close(go[0]), close(go[1]);
	return status;
}

static int run_outer(void)
{
	return outer();
}

static int run_often(void)
{
	left_often();
	return 7;
}

static void test_longjmp(bool patched)
{
	uint64_t returns;
	int status = in_child(run_outer, true, &returns);
	bool right = WIFEXITED(status) && WEXITSTATUS(status) == 7;

	result(right == patched, "longjmp over a probed frame: status %#x, %llu returns", status,
	       (unsigned long long)returns);
	status = in_child(run_often, false, &returns);
	right = WIFEXITED(status) && WEXITSTATUS(status) == 7;
	result(right && (returns == 10) == patched,
	       "10 returns after 100 longjmps: %llu seen, status %#x", (unsigned long long)returns,
	       status);
}

/* Without the patch the kernel kills who writes, and the other process's lock is lost. */
static void test_remote_write(bool patched)
{
	struct remote_write w;
	int ret = remote_write_huge(&w);
	bool right = WIFEXITED(w.writer) && !WEXITSTATUS(w.writer) && w.arrived;

	result(!ret && w.huge && (patched ? right : WIFSIGNALED(w.writer)),
	       "/proc/PID/mem writes to an executable huge page: status %#x, %s", w.writer,
	       w.arrived ? "it arrived" : "it did not arrive");
}

/* ---------------------------------------------------------------------------------- machine -- */

static void test_log(void)
{
	static char log[1 << 18];
	int bytes = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
	char *warning;

	log[bytes > 0 ? bytes : 0] = 0;
	warning = strstr(log, "WARNING:");
	result(bytes > 0 && !warning, "no kernel warning");
	if (warning)
		printf("# %.200s\n", warning);
}

/* As much stack above the tests as a sample may ask for. */
static void __attribute__((noinline)) test_samples(void)
{
	volatile char above[2 * STACK_LARGE];

	for (size_t i = 0; i < sizeof(above); i += 64)
		above[i] = (char)i;
	test_probe(8192);
	test_probe(STACK_LARGE);
	test_clock();
	test_syscall();
}

static void set_up(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		printf("Bail out! mount: %s\n", strerror(errno));
	setvbuf(stdout, NULL, _IONBF, 0);
}

int main(void)
{
	const char *expect = getenv("expect");
	bool patched = expect && !strcmp(expect, "patched");
	struct utsname u;

	set_up();
	uname(&u);
	printf("# %s %s %s\n", u.machine, u.release, patched ? "patched" : "stock");
	test_accepted(patched ? 0 : -ENOSYS);
	if (patched)
		test_samples();
	test_longjmp(patched);
	test_remote_write(patched);
	test_log();
	printf("1..%d\n# %s: %d failed\n", tests, failures ? "FAIL" : "PASS", failures);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return !!failures;
}
