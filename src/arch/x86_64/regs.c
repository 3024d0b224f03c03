/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* struct arch of x86-64, and its functions on general registers as in NT_PRSTATUS. */
#include <errno.h>
#include <string.h>
#include "arch/x86_64/x86_64.h"

#define EFLAGS_TF 0x100u
#define EFLAGS_DF 0x400u

/* Offsets by DWARF number (psABI 3.6.2). */
static const uint16_t dwarf_offset[17] = {
    offsetof(struct x86_user_regs, rax), offsetof(struct x86_user_regs, rdx),
    offsetof(struct x86_user_regs, rcx), offsetof(struct x86_user_regs, rbx),
    offsetof(struct x86_user_regs, rsi), offsetof(struct x86_user_regs, rdi),
    offsetof(struct x86_user_regs, rbp), offsetof(struct x86_user_regs, rsp),
    offsetof(struct x86_user_regs, r8),	 offsetof(struct x86_user_regs, r9),
    offsetof(struct x86_user_regs, r10), offsetof(struct x86_user_regs, r11),
    offsetof(struct x86_user_regs, r12), offsetof(struct x86_user_regs, r13),
    offsetof(struct x86_user_regs, r14), offsetof(struct x86_user_regs, r15),
    offsetof(struct x86_user_regs, rip),
};

static struct x86_user_regs *user(struct arch_regs *regs)
{
	return (struct x86_user_regs *)regs->raw;
}

static const struct x86_user_regs *cuser(const struct arch_regs *regs)
{
	return (const struct x86_user_regs *)regs->raw;
}

static uint64_t get_pc(const struct arch_regs *regs)
{
	return cuser(regs)->rip;
}

static void set_pc(struct arch_regs *regs, uint64_t pc)
{
	user(regs)->rip = pc;
}

static uint64_t get_sp(const struct arch_regs *regs)
{
	return cuser(regs)->rsp;
}

static uint64_t get_tp(const struct arch_regs *regs)
{
	return cuser(regs)->fs_base;
}

static bool get_column(const struct arch_regs *regs, int n, uint64_t *value)
{
	if (n < 0 || n >= UW_MAX_REGS)
		return false;
	memcpy(value, regs->raw + dwarf_offset[n], sizeof(*value));
	return true;
}

/* Does the kernel restart the call, given this result (include/linux/errno.h)? */
static bool restarts(int64_t result)
{
	return result == -512 /* ERESTARTSYS */ || result == -513 /* ERESTARTNOINTR */ ||
	       result == -514 /* ERESTARTNOHAND */ || result == -516 /* ERESTART_RESTARTBLOCK */;
}

/* A finished call leaves its number, too, so only the result distinguishes them. */
static enum arch_syscall_state syscall_state(const struct arch_regs *regs)
{
	return (int64_t)cuser(regs)->orig_rax >= 0 && restarts((int64_t)cuser(regs)->rax)
		   ? ARCH_IN_SYSCALL
		   : ARCH_NOT_IN_SYSCALL;
}

static bool restart_whole(struct arch_regs *regs)
{
	struct x86_user_regs *u = user(regs);

	if ((int64_t)u->orig_rax < 0 || (int64_t)u->rax != -516 /* ERESTART_RESTARTBLOCK */)
		return false;
	u->rax = (uint64_t)-513; /* ERESTARTNOINTR */
	return true;
}

/* Calls that have done nothing if they fail with EINTR.  With a timeout on the socket: read, readv,
 * accept, recvfrom, recvmsg, recvmmsg, accept4, write, writev, sendfile, connect, sendto, sendmsg,
 * sendmmsg.  Others: semop, semtimedop, rt_sigtimedwait, io_getevents, epoll_wait, epoll_pwait,
 * epoll_pwait2, io_uring_enter. */
static bool did_nothing(uint64_t nr)
{
	static const uint16_t call[] = {0,  19, 43,  45, 47,  299, 288, 1,   20,  40,  42,
					44, 46, 307, 65, 220, 128, 208, 232, 281, 441, 426};

	return arch_restart_lists(call, sizeof(call) / sizeof(call[0]), nr);
}

static bool restart_interrupted(struct arch_regs *regs)
{
	struct x86_user_regs *u = user(regs);

	if ((int64_t)u->orig_rax < 0 || (int64_t)u->rax != -EINTR || !did_nothing(u->orig_rax))
		return false;
	u->rax = (uint64_t)-514l; /* ERESTARTNOHAND */
	return true;
}

static int received_less(const struct arch_regs *regs)
{
	const struct x86_user_regs *u = cuser(regs);

	return u->orig_rax == 299 && (int64_t)u->rax > 0 && u->rax < (uint32_t)u->rdx ? (int)u->rdi
										      : -1;
}

static long syscall_number(const struct arch_regs *regs)
{
	return (long)cuser(regs)->orig_rax;
}

static void set_syscall(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6])
{
	struct x86_user_regs *u = user(regs);

	u->rip = pc;
	u->rax = (uint64_t)nr;
	/* -1: the kernel restarts nothing when it returns to the thread. */
	u->orig_rax = UINT64_MAX;
	u->rdi = args[0];
	u->rsi = args[1];
	u->rdx = args[2];
	u->r10 = args[3];
	u->r8 = args[4];
	u->r9 = args[5];
	u->eflags &= ~(unsigned long long)(EFLAGS_TF | EFLAGS_DF);
}

static long get_syscall_result(const struct arch_regs *regs)
{
	return (long)cuser(regs)->rax;
}

static void set_return(struct arch_regs *regs, uint64_t code, uint64_t frame, uint64_t sigreturn)
{
	struct x86_user_regs *u = user(regs);

	(void)sigreturn; /* is in the frame */
	u->rip = code + X86_SYSCALL_LENGTH;
	u->rsp = frame;
	u->orig_rax = UINT64_MAX;
	u->eflags &= ~(unsigned long long)(EFLAGS_TF | EFLAGS_DF);
}

const struct arch arch_x86_64 = {
    .name = "x86_64",
    .elf_machine = 62, /* EM_X86_64 */
    .elf_class = 2,    /* ELFCLASS64 */
    .elf_data = 1,     /* ELFDATA2LSB */
    .word_size = 8,
    .address_bits = 47,
    .insn_align = 1,
    .nr = {.mmap = 9,
	   .munmap = 11,
	   .memfd_create = 319,
	   .close = 3,
	   .userfaultfd = 323,
	   .madvise = 28,
	   .ftruncate = 77,
	   .gettid = 186,
	   .getpid = 39,
	   .clone = 56,
	   .wait4 = 61,
	   .prctl = 157,
	   .exit = 60,
	   .rt_sigprocmask = 14,
	   .rt_sigreturn = 15,
	   .sigaltstack = 131,
	   .mprotect = 10,
	   .munlock = 150,
	   .sched_yield = 24,
	   .futex = 202,
	   .shmctl = 31,
	   .restart_syscall = 219,
	   .process_vm_readv = 310},
    .regs = {.regset_size = sizeof(struct x86_user_regs),
	     .fp_regset = 0x202, /* NT_X86_XSTATE */
	     .get_pc = get_pc,
	     .set_pc = set_pc,
	     .get_sp = get_sp,
	     .get_tp = get_tp,
	     .get_column = get_column},
    .syscall = {.audit_arch = 0xc000003e, /* AUDIT_ARCH_X86_64 */
		.insn_length = X86_SYSCALL_LENGTH,
		.sigset_size = 8,
		.state = syscall_state,
		.number = syscall_number,
		.set = set_syscall,
		.result = get_syscall_result},
    .restart = {.whole = restart_whole,
		.interrupted = restart_interrupted,
		.received_less = received_less,
		.restarted_number = x86_restarted_number},
    .emergency = {.syscall_return = {.bytes = {0x0f, 0x05, 0xc3}, .length = 3},
		  .sigreturn = {{.bytes = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},
				 .length = 9}, /* mov $15,%rax; syscall */
				{.bytes = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05},
				 .length = 7},			       /* mov $15,%eax; syscall */
				{.bytes = {0x58, 0xc3}, .length = 2}}, /* pop %rax; ret */
		  .frame_bytes = 1024,
		  .build_frame = x86_emergency_frame,
		  .set_return = set_return},
    .breakpoint = {.wide = {.bytes = {0xcc}, .length = 1}, /* int3 */
		   .pc_behind = 1,
		   .return_on_stack = true},
    .patch = {.reach = 0x7fff0000, /* jmp rel32, less a margin */
	      .decode = x86_decode,
	      .plan = x86_plan_patch,
	      .encode_slot = x86_encode_slot},
    .unwind = {.column = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
			  -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
	       .preserved =
		   1u << 3 | 1u << UW_REG_FP | 1u << UW_REG_SP | 0xfu << 12 | 1u << UW_REG_PC,
	       .call_push = 8,
	       .red_zone = 128, /* psABI 3.2.2 */
	       /* cs of 64-bit user code, followed by zeros where gs and fs once were */
	       .signal_frame = {16, -8, -152, -136, 0x0000ffffffffffff, 0x33},
	       .find_frames = x86_find_frames,
	       .ends_in_call = x86_ends_in_call},
    /* asm/perf_regs.h: ax bx cx dx si di bp sp ip, r8 to r15 from bit 16 */
    .perf = {.regs_mask = 0xff01ff,
	     .column = {0, 3, 2, 1, 4, 5, 6, 7, 16, [16] = 8, 9, 10, 11, 12, 13, 14, 15},
	     .arg = {5, 4, 3, 2, 16}, /* rdi rsi rdx rcx r8 (psABI 3.2.3) */
	     .result = 0},
    .guard = {ARCH_GUARD_TCB, 0x30, 17},
};
