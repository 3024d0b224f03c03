/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* struct arch of ARM, and its functions on general registers as in NT_PRSTATUS: r0 to r15, cpsr,
 * ORIG_r0 (asm/ptrace.h). */
#include <errno.h>
#include "arch/arm/arm.h"
#include "arch/arm/frame.h"
#include "arch/arm/trampoline.h"

#define NR 7 /* register of a system call's number */

/* Register of each column; -1: none. */
static const int8_t register_of[UW_MAX_REGS] = {7,  4,	5,  6,	8,  9,	11,	ARM_SP, 10,
						12, -1, -1, -1, -1, -1, ARM_LR, ARM_PC};

static uint64_t get_pc(const struct arch_regs *regs)
{
	return arm_reg(regs, ARM_PC);
}

/* Keeps the instruction set. */
static void set_pc(struct arch_regs *regs, uint64_t pc)
{
	arm_set_reg(regs, ARM_PC, pc);
}

static uint64_t get_sp(const struct arch_regs *regs)
{
	return arm_reg(regs, ARM_SP);
}

static bool get_column(const struct arch_regs *regs, int n, uint64_t *value)
{
	if (n < 0 || n >= UW_MAX_REGS || register_of[n] < 0)
		return false;
	*value = arm_reg(regs, register_of[n]);
	return true;
}

/*
 * The kernel restores pc and r0 before a tracer sees them (arch/arm/kernel/signal.c, do_signal()),
 * so a call that is going to be restarted looks like one that is about to be made.  A finished call
 * whose result equals its first argument looks the same, which does no harm here.
 */
static enum arch_syscall_state syscall_state(const struct arch_regs *regs)
{
	uint32_t orig = arm_reg(regs, ARM_ORIG);

	return orig != UINT32_MAX && arm_reg(regs, 0) == orig ? ARCH_IN_SYSCALL
							      : ARCH_NOT_IN_SYSCALL;
}

static bool before_syscall(const struct arch_regs *regs, const uint8_t *code, size_t n)
{
	bool thumb = arm_reg(regs, ARM_CPSR) & CPSR_T;
	struct arch_insn insn;

	return arm_decode(code, n, get_pc(regs) | thumb, &insn) && insn.kind == ARCH_INSN_SYSCALL;
}

static long syscall_number(const struct arch_regs *regs)
{
	return (long)arm_reg(regs, NR);
}

static void set_number(struct arch_regs *regs, long nr)
{
	arm_set_reg(regs, NR, (uint64_t)nr);
}

/* Calls that have done nothing if they fail with EINTR.  With a timeout on the socket: read, readv,
 * recv, recvfrom, recvmsg, recvmmsg (both forms), accept, accept4, write, writev, sendfile (both),
 * connect, send, sendto, sendmsg, sendmmsg.  Others: semop, semtimedop (both), rt_sigtimedwait
 * (both), io_getevents, epoll_wait, epoll_pwait, epoll_pwait2, io_uring_enter. */
static bool did_nothing(uint32_t nr)
{
	static const uint16_t call[] = {3,   145, 291, 292, 297, 365, 417, 285, 366, 4,
					146, 187, 239, 283, 289, 290, 296, 374, 298, 312,
					420, 177, 421, 245, 252, 346, 441, 426};

	return arch_restart_lists(call, sizeof(call) / sizeof(call[0]), nr);
}

static bool restart_interrupted(struct arch_regs *regs)
{
	uint32_t orig = arm_reg(regs, ARM_ORIG);
	uint32_t length = arm_reg(regs, ARM_CPSR) & CPSR_T ? 2 : 4;

	if (orig == UINT32_MAX || arm_reg(regs, 0) != (uint32_t)-EINTR ||
	    !did_nothing(arm_reg(regs, NR)))
		return false;
	arm_set_reg(regs, 0, orig);
	arm_set_reg(regs, ARM_PC, arm_reg(regs, ARM_PC) - length);
	return true;
}

/* Continues at Thumb code, outside any IT block and with nothing to restart. */
static void go_to(struct arch_regs *regs, uint64_t pc)
{
	uint32_t cpsr = arm_reg(regs, ARM_CPSR) & ~(CPSR_IT | CPSR_J);

	arm_set_reg(regs, ARM_CPSR, cpsr | CPSR_T);
	arm_set_reg(regs, ARM_PC, pc);
	arm_set_reg(regs, ARM_ORIG, UINT32_MAX);
}

static void set_syscall(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6])
{
	go_to(regs, pc);
	for (int i = 0; i < 6; i++)
		arm_set_reg(regs, i, args[i]);
	arm_set_reg(regs, NR, (uint64_t)nr);
}

static long get_syscall_result(const struct arch_regs *regs)
{
	return (int32_t)arm_reg(regs, 0);
}

static void set_return(struct arch_regs *regs, uint64_t code, uint64_t frame, uint64_t sigreturn)
{
	go_to(regs, code + 2);
	arm_set_reg(regs, 0, 0);
	arm_set_reg(regs, ARM_SP, frame);
	arm_set_reg(regs, ARM_LR, sigreturn | ARM_THUMB);
}

static long restarted_number(const uint8_t *code, size_t n)
{
	(void)code;
	(void)n;
	return -1; /* r7 has the number of the call itself, even if the kernel restarts it */
}

const struct arch arch_arm = {
    .name = "arm",
    .elf_machine = 40, /* EM_ARM */
    .elf_class = 1,    /* ELFCLASS32 */
    .elf_data = 1,     /* ELFDATA2LSB */
    .word_size = 4,
    .address_bits = 32,
    .insn_align = 2,
    .code_bits = ARM_THUMB,
    .mapping_symbols = "atd",
    .nr = {.mmap = 192, /* mmap2: the offset, which is 0, counts pages */
	   .munmap = 91,
	   .memfd_create = 385,
	   .close = 6,
	   .userfaultfd = 388,
	   .madvise = 220,
	   .ftruncate = 93,
	   .gettid = 224,
	   .getpid = 20,
	   .clone = 120,
	   .wait4 = 114,
	   .prctl = 172,
	   .exit = 1,
	   .rt_sigprocmask = 175,
	   .rt_sigreturn = 173,
	   .sigaltstack = 186,
	   .mprotect = 125,
	   .munlock = 151,
	   .sched_yield = 158,
	   .futex = 240,
	   .shmctl = 308,
	   .restart_syscall = 0,
	   .process_vm_readv = 376},
    .regs = {.regset_size = 4ul * ARM_REGS,
	     .fp_regset = 0x400, /* NT_ARM_VFP */
	     .get_pc = get_pc,
	     .set_pc = set_pc,
	     .get_sp = get_sp,
	     .get_column = get_column},
    .syscall = {.audit_arch = 0x40000028, /* AUDIT_ARCH_ARM */
		.insn_length = 2,
		.sigset_size = 8,
		.state = syscall_state,
		.before = before_syscall,
		.number = syscall_number,
		.set = set_syscall,
		.result = get_syscall_result},
    .restart = {.change_number = 23, /* PTRACE_SET_SYSCALL */
		.set_number = set_number,
		.interrupted = restart_interrupted,
		.restarted_number = restarted_number},
    /* svc 0; then pop {r7}; bx lr (glibc) or mov r7, r3; bx lr (musl) */
    .emergency =
	{.syscall_return = {{0x00, 0xdf, 0x80, 0xbc, 0x70, 0x47}, 6, 4},
	 .other_return = {{0x00, 0xdf, 0x1f, 0x46, 0x70, 0x47}, 6, 0},
	 .sigreturn = {{{0x4f, 0xf0, 0xad, 0x07, 0x00, 0xdf}, 6, 0}}, /* mov.w r7, #173; svc 0 */
	 .frame_bytes = 1024,
	 .build_frame = arm_emergency_frame,
	 .set_return = set_return},
    .breakpoint = {.wide = {{0xf0, 0x01, 0xf0, 0xe7}, 4, 0}, .narrow = {{0x01, 0xde}, 2, 0}},
    .patch = {.reach = 0xf00000,     /* b.w, less a margin */
	      .far_reach = 1u << 31, /* ldr.w pc, [pc] */
	      .groups = true,
	      .decode = arm_decode,
	      .plan = arm_plan_patch,
	      .encode_slot = arm_encode_slot},
    .unwind = {.column = {-1, -1, -1,	     -1, 1,	    2,	       3,	  0,  4,
			  5,  8,  UW_REG_FP, 9,	 UW_REG_SP, UW_REG_LR, UW_REG_PC, -1, -1,
			  -1, -1, -1,	     -1, -1,	    -1,	       -1,	  -1, -1,
			  -1, -1, -1,	     -1, -1,	    -1,	       -1},
	       .preserved = 0x3fu | 1u << UW_REG_FP | 1u << UW_REG_SP | 1u << 8 | 1u << UW_REG_LR,
	       /* cpsr: user mode, interrupts on, no Jazelle */
	       .signal_frame = {4, -8, -84, -76, 0x010000df, 0x10},
	       .trampolines = arm_trampolines,
	       .frame_insn = arm_frame_insn},
    /* asm/perf_regs.h: r0 to r15 */
    .perf = {.regs_mask = 0xffff,
	     .column = {-1, -1, -1, -1, 1, 2, 3, 0, 4, 5, 8, UW_REG_FP, 9, UW_REG_SP, UW_REG_LR,
			UW_REG_PC},
	     .arg = {0, 1, 2, 3, ARCH_ARG_ON_STACK},
	     .result = 0},
    .tls = {.request = 22 /* PTRACE_GET_THREAD_AREA */, .above = true},
    .guard = {ARCH_GUARD_LD, 0, 0},
};
