/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#if defined(__x86_64__)
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <elf.h>
#include "arch/arch.h"

static const struct arch *const x86 = &arch_x86_64;

static void put(struct arch_regs *regs, const struct user_regs_struct *u)
{
	memset(regs, 0, sizeof(*regs));
	memcpy(regs->raw, u, sizeof(*u));
	regs->size = sizeof(*u);
}

static void test_found_by_elf_header(void **state)
{
	(void)state;
	assert_ptr_equal(arch_for_elf(ELFCLASS64, ELFDATA2LSB, EM_X86_64), x86);
	assert_null(arch_for_elf(ELFCLASS32, ELFDATA2LSB, EM_X86_64)); /* x32 */
	assert_null(arch_for_elf(ELFCLASS32, ELFDATA2LSB, EM_386));
	assert_null(arch_for_elf(ELFCLASS64, ELFDATA2MSB, EM_X86_64));
	for (int r = ARCH_OK; r <= ARCH_REFUSE_FOREIGN; r++)
		assert_true(strlen(arch_refusal_text((enum arch_refusal)r)) > 5);
}

/* memprof's layout of the registers is the kernel's. */
static void test_fields(void **state)
{
	struct user_regs_struct u = {.rip = 1,
				     .rsp = 2,
				     .fs_base = 3,
				     .rax = 10,
				     .rdx = 11,
				     .rcx = 12,
				     .rbx = 13,
				     .rsi = 14,
				     .rdi = 15,
				     .rbp = 16,
				     .r8 = 18,
				     .r9 = 19,
				     .r10 = 20,
				     .r11 = 21,
				     .r12 = 22,
				     .r13 = 23,
				     .r14 = 24,
				     .r15 = 25};
	static const uint64_t want[17] = {10, 11, 12, 13, 14, 15, 16, 2, 18,
					  19, 20, 21, 22, 23, 24, 25, 1};
	struct arch_regs regs;
	uint64_t value;

	(void)state;
	put(&regs, &u);
	assert_int_equal(x86->regs.regset_size, sizeof(u));
	assert_int_equal(x86->regs.get_pc(&regs), 1);
	assert_int_equal(x86->regs.get_sp(&regs), 2);
	assert_int_equal(x86->regs.get_tp(&regs), 3);
	for (int i = 0; i < 17; i++) {
		assert_true(x86->regs.get_column(&regs, i, &value));
		assert_int_equal(value, want[i]);
	}
	assert_false(x86->regs.get_column(&regs, -1, &value));
	assert_false(x86->regs.get_column(&regs, 17, &value));
	x86->regs.set_pc(&regs, 100);
	memcpy(&u, regs.raw, sizeof(u));
	assert_int_equal(u.rip, 100);
	assert_int_equal(u.rsp, 2);
	assert_int_equal(u.rax, 10);
}

static void test_syscall_state(void **state)
{
	static const int restarting[] = {512, 513, 514, 516};
	struct user_regs_struct u = {.orig_rax = 35};
	struct arch_regs regs;

	(void)state;
	for (size_t i = 0; i < sizeof(restarting) / sizeof(restarting[0]); i++) {
		u.rax = (unsigned long long)-restarting[i];
		put(&regs, &u);
		assert_int_equal(x86->syscall.state(&regs), ARCH_IN_SYSCALL);
		assert_int_equal(x86->syscall.number(&regs), 35);
	}
	u.rax = (unsigned long long)-EINTR;
	put(&regs, &u);
	assert_int_equal(x86->syscall.state(&regs), ARCH_NOT_IN_SYSCALL);
	u.orig_rax = UINT64_MAX;
	u.rax = (unsigned long long)-512;
	put(&regs, &u);
	assert_int_equal(x86->syscall.state(&regs), ARCH_NOT_IN_SYSCALL);
}

static void test_set_syscall(void **state)
{
	static const uint64_t args[6] = {1, 2, 3, 4, 5, 6};
	struct user_regs_struct u = {
	    .eflags = 0x702, .orig_rax = 7, .rax = (uint64_t)-512, .rbx = 99, .rsp = 88};
	struct arch_regs regs;

	(void)state;
	put(&regs, &u);
	x86->syscall.set(&regs, 0x1234, 9, args);
	memcpy(&u, regs.raw, sizeof(u));
	assert_int_equal(u.rip, 0x1234);
	assert_int_equal(u.rax, 9);
	assert_int_equal(u.orig_rax, UINT64_MAX);
	assert_int_equal(u.rdi, 1);
	assert_int_equal(u.rsi, 2);
	assert_int_equal(u.rdx, 3);
	assert_int_equal(u.r10, 4);
	assert_int_equal(u.r8, 5);
	assert_int_equal(u.r9, 6);
	assert_int_equal(u.eflags, 0x202); /* TF and DF are gone, IF stays */
	assert_int_equal(u.rbx, 99);
	assert_int_equal(u.rsp, 88);
	u.rax = (unsigned long long)-ENOMEM;
	put(&regs, &u);
	assert_int_equal(x86->syscall.result(&regs), -ENOMEM);
}

#if defined(__x86_64__)
static void wait_for_pause(pid_t pid)
{
	char path[64], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (atoi(text) != SYS_pause) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
		fclose(f);
		usleep(1000);
	}
}

/* Registers that the kernel shows of a thread that sleeps in a system call. */
static void test_of_a_sleeping_child(void **state)
{
	struct arch_regs regs = {0};
	struct iovec io = {regs.raw, sizeof(regs.raw)};
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		for (;;)
			pause();
	}
	assert_true(child > 0);
	wait_for_pause(child);
	assert_int_equal(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
	assert_int_equal(waitpid(child, &status, __WALL), child);
	assert_int_equal(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &io), 0);
	assert_int_equal(io.iov_len, x86->regs.regset_size);
	assert_int_equal(x86->syscall.state(&regs), ARCH_IN_SYSCALL);
	assert_int_equal(x86->syscall.number(&regs), SYS_pause);
	assert_int_not_equal(x86->regs.get_tp(&regs), 0);
	kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) == child && !WIFSIGNALED(status))
		;
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(x86->nr.mmap, SYS_mmap);
	assert_int_equal(x86->nr.munmap, SYS_munmap);
	assert_int_equal(x86->nr.memfd_create, SYS_memfd_create);
	assert_int_equal(x86->nr.close, SYS_close);
	assert_int_equal(x86->nr.madvise, SYS_madvise);
	assert_int_equal(x86->nr.ftruncate, SYS_ftruncate);
	assert_int_equal(x86->nr.gettid, SYS_gettid);
	assert_int_equal(x86->nr.getpid, SYS_getpid);
	assert_int_equal(x86->nr.clone, SYS_clone);
	assert_int_equal(x86->nr.wait4, SYS_wait4);
	assert_int_equal(x86->nr.prctl, SYS_prctl);
	assert_int_equal(x86->nr.exit, SYS_exit);
	assert_int_equal(x86->nr.rt_sigprocmask, SYS_rt_sigprocmask);
	assert_int_equal(x86->nr.sched_yield, SYS_sched_yield);
	assert_int_equal(x86->nr.futex, SYS_futex);
	assert_int_equal(x86->nr.shmctl, SYS_shmctl);
	assert_int_equal(x86->nr.restart_syscall, SYS_restart_syscall);
}

static void test_made_again(void **state)
{
	static const int again[] = {SYS_read,	       SYS_readv,	    SYS_accept,
				    SYS_accept4,       SYS_recvfrom,	    SYS_recvmsg,
				    SYS_recvmmsg,      SYS_write,	    SYS_writev,
				    SYS_sendfile,      SYS_connect,	    SYS_sendto,
				    SYS_sendmsg,       SYS_sendmmsg,	    SYS_semop,
				    SYS_semtimedop,    SYS_rt_sigtimedwait, SYS_io_getevents,
				    SYS_epoll_wait,    SYS_epoll_pwait,	    SYS_epoll_pwait2,
				    SYS_io_uring_enter};
	static const int never[] = {SYS_close, SYS_pause, SYS_rt_sigsuspend, SYS_nanosleep,
				    SYS_fsync};
	struct arch_regs regs = {.size = x86->regs.regset_size};
	struct user_regs_struct *u = (struct user_regs_struct *)regs.raw;

	(void)state;
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
		u->orig_rax = (uint64_t)again[i];
		u->rax = (uint64_t)-EINTR;
		assert_true(x86->restart.interrupted(&regs));
		u->rax = 0; /* the call has succeeded */
		assert_false(x86->restart.interrupted(&regs));
	}
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		u->orig_rax = (uint64_t)never[i];
		u->rax = (uint64_t)-EINTR;
		assert_false(x86->restart.interrupted(&regs));
	}
}

static void test_received_less(void **state)
{
	struct arch_regs regs = {.size = x86->regs.regset_size};
	struct user_regs_struct *u = (struct user_regs_struct *)regs.raw;

	(void)state;
	u->orig_rax = SYS_recvmmsg;
	u->rdi = 7;
	u->rdx = 3;
	u->rax = 2;
	assert_int_equal(x86->restart.received_less(&regs), 7);
	u->rax = 3;
	assert_int_equal(x86->restart.received_less(&regs), -1);
	u->rax = (uint64_t)-EINTR;
	assert_int_equal(x86->restart.received_less(&regs), -1);
	u->rax = 2;
	u->orig_rax = UINT64_MAX;
	assert_int_equal(x86->restart.received_less(&regs), -1);
}

static void test_restarted_number(void **state)
{
	static const uint8_t nanosleep[] = {0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t futex[] = {0xb8, 0xca, 0, 0, 0, 0x45, 0x31, 0xc9, 0x0f, 0x05};
	static const uint8_t other[] = {0xb8, 0x01, 0, 0, 0, 0x0f, 0x05};

	(void)state;
	assert_int_equal(x86->restart.restarted_number(nanosleep, sizeof(nanosleep)),
			 SYS_clock_nanosleep);
	assert_int_equal(x86->restart.restarted_number(futex, sizeof(futex)), SYS_futex);
	assert_int_equal(x86->restart.restarted_number(other, sizeof(other)), -1);
	assert_int_equal(x86->restart.restarted_number(nanosleep + 5, 2), -1);
}

/* Makes a child execute rt_sigreturn on the emergency frame: it must continue where it was. */
static void goes_back(uint8_t form)
{
	static const char *const code = "\x0f\x05\xc3";
	_Alignas(64) static uint8_t stack[65536], text[4096], xstate[16384];
	struct arch_emergency e = {.again = -1, .sigreturn_form = form, .xstate = xstate};
	struct arch_regs saved, regs;
	struct iovec iov = {saved.raw, sizeof(saved.raw)};
	struct iovec xiov = {xstate, sizeof(xstate)};
	uint64_t frame = (uint64_t)(uintptr_t)stack + 32768;
	volatile uint8_t *let_go =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child = fork();

	if (!child) {
		memcpy(text, code, 3);
		memcpy(text + 16, x86->emergency.sigreturn[form].bytes,
		       x86->emergency.sigreturn[form].length);
		if (mprotect((void *)((uintptr_t)text & ~4095ul), 8192,
			     PROT_READ | PROT_WRITE | PROT_EXEC))
			_exit(2);
		raise(SIGSTOP);
		while (!*let_go)
			;
		_exit(42);
	}
	assert_int_equal(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	waitpid(child, &status, __WALL);
	kill(child, SIGCONT);
	ptrace(PTRACE_CONT, child, 0, 0);
	usleep(20000);
	ptrace(PTRACE_INTERRUPT, child, 0, 0);
	do {
		waitpid(child, &status, __WALL);
		if (status >> 16 != PTRACE_EVENT_STOP || WSTOPSIG(status) != SIGTRAP)
			ptrace(PTRACE_CONT, child, 0, 0);
	} while (status >> 16 != PTRACE_EVENT_STOP || WSTOPSIG(status) != SIGTRAP);
	assert_int_equal(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &iov), 0);
	assert_int_equal(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &xiov), 0);
	saved.size = iov.iov_len;
	e.regs = &saved;
	e.xstate_size = xiov.iov_len;
	e.syscall_return = (uint64_t)(uintptr_t)text;
	e.sigreturn = (uint64_t)(uintptr_t)text + 16;
	assert_true(x86->emergency.build_frame(stack, sizeof(stack), frame, &e) > 576);
	assert_int_equal(x86->emergency.build_frame(stack, 512, frame, &e), 0);
	x86->emergency.build_frame(stack, sizeof(stack), frame, &e);
	for (size_t i = 0; i < 20480; i += 8)
		ptrace(PTRACE_POKEDATA, child, (void *)(frame + i),
		       (void *)*(unsigned long *)(stack + i));
	regs = saved;
	x86->emergency.set_return(&regs, e.syscall_return, frame, e.sigreturn);
	iov.iov_base = regs.raw;
	assert_int_equal(ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &iov), 0);
	*let_go = 1;
	ptrace(PTRACE_DETACH, child, 0, 0);
	waitpid(child, &status, __WALL);
	munmap((void *)let_go, 4096);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

static void test_emergency_frame(void **state)
{
	(void)state;
	for (uint8_t form = 0; form < 3; form++)
		goes_back(form);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_elf_header),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_syscall_state),
		cmocka_unit_test(test_set_syscall),
#if defined(__x86_64__)
		cmocka_unit_test(test_of_a_sleeping_child),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_made_again),
		cmocka_unit_test(test_received_less),
		cmocka_unit_test(test_restarted_number),
		cmocka_unit_test(test_emergency_frame),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	print_message("skipped: this host does not run x86-64 code\n");
	return 77;
}
#endif
