/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * struct arch of MIPS64 in both byte orders, and its functions on registers.  These are the general
 * registers as in NT_PRSTATUS (arch/mips/kernel/ptrace.c, mips_dump_regs64), and two words of the
 * kernel's register state that are not in it: the number of the call that a stopped thread must
 * restart is in the place of $0, its $a3 in that of $k0 (arch/mips/kernel/signal.c, do_signal).  A
 * call that is to be restarted has its error number, positive, in $v0; the kernel examines it when
 * the thread resumes.
 */
#include <string.h>
#include "arch/mips64/frame.h"
#include "arch/mips64/mips64.h"
#include "arch/mips64/trampoline.h"

#define EINTR 4

/* include/linux/errno.h */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/* Column of each register, by number. */
static const int8_t columns[32] = {
    [0 ... 15] = -1,  [16] = 0,	 1,	    2,	       3,	 4, 5, 8, 9,
    [24 ... 27] = -1, [28] = 10, UW_REG_SP, UW_REG_FP, UW_REG_LR};

static uint64_t get_pc(const struct arch_regs *regs)
{
	return mips_reg(regs, MIPS_R_EPC);
}

static void set_pc(struct arch_regs *regs, uint64_t pc)
{
	mips_set_reg(regs, MIPS_R_EPC, pc);
}

static uint64_t get_sp(const struct arch_regs *regs)
{
	return mips_reg(regs, MIPS_R_SP);
}

static bool get_column(const struct arch_regs *regs, int n, uint64_t *value)
{
	if (n == UW_REG_PC) {
		*value = get_pc(regs);
		return true;
	}
	for (int i = 0; i < 32; i++) {
		if (columns[i] == n && n >= 0) {
			*value = mips_reg(regs, i);
			return true;
		}
	}
	return false;
}

static bool restarts(uint64_t error)
{
	return error == ERESTARTSYS || error == ERESTARTNOINTR || error == ERESTARTNOHAND ||
	       error == ERESTART_RESTARTBLOCK;
}

static enum arch_syscall_state syscall_state(const struct arch_regs *regs)
{
	return mips_reg(regs, MIPS_R_RESTART) && restarts(mips_reg(regs, MIPS_R_V0))
		   ? ARCH_IN_SYSCALL
		   : ARCH_NOT_IN_SYSCALL;
}

static bool restart_whole(struct arch_regs *regs)
{
	if (!mips_reg(regs, MIPS_R_RESTART) || mips_reg(regs, MIPS_R_V0) != ERESTART_RESTARTBLOCK)
		return false;
	mips_set_reg(regs, MIPS_R_V0, ERESTARTNOINTR);
	return true;
}

/* Calls that have done nothing if they fail with EINTR.  With a timeout on the socket: read, readv,
 * accept, recvfrom, recvmsg, recvmmsg, accept4, write, writev, sendfile, connect, sendto, sendmsg,
 * sendmmsg.  Others: semop, semtimedop, rt_sigtimedwait, io_getevents, epoll_wait, epoll_pwait,
 * epoll_pwait2, io_uring_enter. */
static bool did_nothing(uint64_t nr)
{
	static const uint16_t call[] = {5000, 5018, 5042, 5044, 5046, 5294, 5293, 5001,
					5019, 5039, 5041, 5043, 5045, 5302, 5063, 5214,
					5126, 5202, 5209, 5272, 5441, 5426};

	return arch_restart_lists(call, sizeof(call) / sizeof(call[0]), nr);
}

static bool restart_interrupted(struct arch_regs *regs)
{
	if (mips_reg(regs, MIPS_R_V0) != EINTR || !mips_reg(regs, MIPS_R_A3) ||
	    !did_nothing(mips_reg(regs, MIPS_R_RESTART)))
		return false;
	mips_set_reg(regs, MIPS_R_V0, ERESTARTNOHAND);
	return true;
}

static long syscall_number(const struct arch_regs *regs)
{
	return (long)mips_reg(regs, MIPS_R_RESTART);
}

static void set_syscall(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6])
{
	set_pc(regs, pc);
	mips_set_reg(regs, MIPS_R_RESTART, 0);
	mips_set_reg(regs, MIPS_R_V0, (uint64_t)nr);
	for (int i = 0; i < 6; i++)
		mips_set_reg(regs, MIPS_R_A0 + i, args[i]);
}

static long get_syscall_result(const struct arch_regs *regs)
{
	long value = (long)mips_reg(regs, MIPS_R_V0);

	return mips_reg(regs, MIPS_R_A3) ? -value : value;
}

static void set_return(struct arch_regs *regs, uint64_t code, uint64_t frame, uint64_t sigreturn)
{
	set_pc(regs, code + MIPS_INSN);
	mips_set_reg(regs, MIPS_R_RESTART, 0);
	/* Not an error that would make the kernel restart a call. */
	mips_set_reg(regs, MIPS_R_V0, 0);
	mips_set_reg(regs, MIPS_R_SP, frame);
	mips_set_reg(regs, MIPS_R_RA, sigreturn);
}

/* The ABI's calling convention (System V ABI, MIPS supplement): $gp is computed from $t9. */
static void enter(struct arch_regs *regs, uint64_t addr)
{
	mips_set_reg(regs, MIPS_R_T9, addr);
}

static bool decode_little(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	return mips_decode(code, size, addr, insn, false);
}

static bool decode_big(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	return mips_decode(code, size, addr, insn, true);
}

static enum arch_refusal plan_little(const uint8_t *code, size_t size, uint64_t addr,
				     uint64_t slot_entry, uint64_t relocated_at,
				     struct arch_patch *patch)
{
	return mips_plan_patch(code, size, addr, slot_entry, relocated_at, patch, false);
}

static enum arch_refusal plan_big(const uint8_t *code, size_t size, uint64_t addr,
				  uint64_t slot_entry, uint64_t relocated_at,
				  struct arch_patch *patch)
{
	return mips_plan_patch(code, size, addr, slot_entry, relocated_at, patch, true);
}

static size_t slot_little(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry)
{
	(void)at;
	return mips_encode_slot(out, desc, agent_entry, false);
}

static size_t slot_big(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry)
{
	(void)at;
	return mips_encode_slot(out, desc, agent_entry, true);
}

/* Common to both byte orders. */
/* clang-format off */
#define MIPS64											\
    .elf_machine = 8, /* EM_MIPS */								\
    .elf_class = 2, /* ELFCLASS64 */								\
    .word_size = 8,										\
    .address_bits = 48,										\
    .insn_align = MIPS_INSN,									\
    .vdso_clock = "__vdso_clock_gettime",							\
    .nr = {.mmap = 5009,									\
	   .munmap = 5011,									\
	   .memfd_create = 5314,								\
	   .close = 5003,									\
	   .userfaultfd = 5317,									\
	   .madvise = 5027,									\
	   .ftruncate = 5075,									\
	   .gettid = 5178,									\
	   .getpid = 5038,									\
	   .clone = 5055,									\
	   .wait4 = 5059,									\
	   .prctl = 5153,									\
	   .exit = 5058,									\
	   .rt_sigprocmask = 5014,								\
	   .rt_sigreturn = MIPS_NR_SIGRETURN,							\
	   .sigaltstack = 5129,									\
	   .mprotect = 5010,									\
	   .munlock = 5147,									\
	   .sched_yield = 5023,									\
	   .futex = 5194,									\
	   .shmctl = 5030,									\
	   .restart_syscall = 5213,								\
	   .process_vm_readv = 5304},								\
    .regs = {.regset_size = 8 * MIPS_REGSET_WORDS,						\
	     .fp_regset = 2, /* NT_PRFPREG */							\
	     .hidden = {{0, 8 * MIPS_R_RESTART}, {MIPS_R_K0, 8 * MIPS_R_K0}},			\
	     .nhidden = 2,									\
	     .get_pc = get_pc,									\
	     .set_pc = set_pc,									\
	     .get_sp = get_sp,									\
	     .get_column = get_column},								\
    .syscall.insn_length = MIPS_INSN,								\
    .syscall.sigset_size = 16,									\
    .syscall.state = syscall_state,								\
    .syscall.number = syscall_number,								\
    .syscall.set = set_syscall,									\
    .syscall.result = get_syscall_result,							\
    .restart = {.whole = restart_whole,								\
		.interrupted = restart_interrupted,						\
		.restarted_number = mips_restarted_number},					\
    .emergency.frame_bytes = 1024,								\
    .emergency.build_frame = mips_emergency_frame,						\
    .emergency.set_return = set_return,								\
    .patch.reach = 1ull << 40,									\
    .patch.region = MIPS_REGION,								\
    .patch.long_jump = MIPS_FAR_LENGTH,								\
    .patch.groups = true,									\
    .patch.enter = enter,									\
    .patch.huge_write_crashes = true,								\
    .unwind.column = {[0 ... 15] = -1, [16] = 0, 1, 2, 3, 4, 5, 8, 9,				\
		      [24 ... 27] = -1, [28] = 10, UW_REG_SP, UW_REG_FP, UW_REG_LR, -1, -1},	\
    .unwind.preserved = 0x73f | 1u << UW_REG_FP | 1u << UW_REG_SP,				\
    .unwind.signal_frame = {-576, -344, -600, -592, UINT64_MAX, 0}, /* sc_regs[0] */		\
    .unwind.frame_insn = mips_frame_insn,							\
    /* asm/perf_regs.h: pc, then the registers by number; the kernel has no $k0 and $k1 */	\
    .perf = {.regs_mask = 0xf0ff01f5,								\
	     .column = {[0] = UW_REG_PC, [1 ... 15] = -1, [16] = 0, 1, 2, 3, 4, 5, 8, 9,	\
			[24 ... 27] = -1, [28] = 10, UW_REG_SP, UW_REG_FP, UW_REG_LR,		\
			[32 ... 63] = -1},							\
	     .arg = {4, 5, 6, 7, 8},								\
	     .result = 2},									\
    .tls = {.request = 25 /* PTRACE_GET_THREAD_AREA */, .bias = 0x7000, .above = true}
/* clang-format on */

const struct arch arch_mips64 = {
    MIPS64,
    .name = "mips64",
    .elf_data = 1,		      /* ELFDATA2LSB */
    .syscall.audit_arch = 0xc0000008, /* AUDIT_ARCH_MIPSEL64 */
    .emergency.syscall_return = {.bytes = {0x0c, 0, 0, 0, 0x08, 0, 0xe0, 0x03, 0, 0, 0, 0},
				 .length = 12}, /* jr $ra; nop */
    .emergency.sigreturn = {{.bytes = {0x5b, 0x14, 0x02, 0x24, 0x0c, 0, 0, 0},
			     .length = 8}}, /* li $v0, 5211; syscall */
    .breakpoint.wide = {.bytes = {0x0d, 0, 0, 0}, .length = 4},
    .patch.decode = decode_little,
    .patch.plan = plan_little,
    .patch.encode_slot = slot_little,
    .unwind.trampolines = mips64_trampolines,
};

const struct arch arch_mips64be = {
    MIPS64,
    .name = "mips64be",
    .elf_data = 2,		      /* ELFDATA2MSB */
    .syscall.audit_arch = 0x80000008, /* AUDIT_ARCH_MIPS64 */
    .emergency.syscall_return = {.bytes = {0, 0, 0, 0x0c, 0x03, 0xe0, 0, 0x08, 0, 0, 0, 0},
				 .length = 12},
    .emergency.sigreturn = {{.bytes = {0x24, 0x02, 0x14, 0x5b, 0, 0, 0, 0x0c}, .length = 8}},
    .breakpoint.wide = {.bytes = {0, 0, 0, 0x0d}, .length = 4},
    .patch.decode = decode_big,
    .patch.plan = plan_big,
    .patch.encode_slot = slot_big,
    .unwind.trampolines = mips64be_trampolines,
};
