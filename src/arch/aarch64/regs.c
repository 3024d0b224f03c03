/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* struct arch of AArch64, and its functions on general registers as in NT_PRSTATUS: struct
 * user_pt_regs, uapi asm/ptrace.h. */
#include <errno.h>
#include <string.h>
#include "arch/aarch64/aarch64.h"
#include "arch/aarch64/trampoline.h"

#define X(n) (8 * (n))

static uint64_t get_word(const struct arch_regs *regs, size_t offset)
{
	uint64_t value;

	memcpy(&value, regs->raw + offset, sizeof(value));
	return value;
}

static void set_word(struct arch_regs *regs, size_t offset, uint64_t value)
{
	memcpy(regs->raw + offset, &value, sizeof(value));
}

static uint64_t get_pc(const struct arch_regs *regs)
{
	return get_word(regs, A64_PC);
}

static void set_pc(struct arch_regs *regs, uint64_t pc)
{
	set_word(regs, A64_PC, pc);
}

static uint64_t get_sp(const struct arch_regs *regs)
{
	return get_word(regs, A64_SP);
}

static bool get_column(const struct arch_regs *regs, int n, uint64_t *value)
{
	static const uint16_t offset[UW_MAX_REGS] = {X(19),
						     X(20),
						     X(21),
						     X(22),
						     X(23),
						     X(24),
						     [UW_REG_FP] = X(29),
						     [UW_REG_SP] = A64_SP,
						     X(25),
						     X(26),
						     X(27),
						     X(28),
						     [UW_REG_LR] = A64_LR,
						     [UW_REG_PC] = A64_PC};

	if (n < 0 || n >= UW_MAX_REGS || !offset[n])
		return false;
	*value = get_word(regs, offset[n]);
	return true;
}

/* Before a tracer is notified, do_signal() has prepared the restart and discarded the call. */
static enum arch_syscall_state syscall_state(const struct arch_regs *regs)
{
	(void)regs;
	return ARCH_NOT_IN_SYSCALL;
}

static bool before_syscall(const struct arch_regs *regs, const uint8_t *code, size_t n)
{
	struct arch_insn insn;

	return a64_decode(code, n, get_pc(regs), &insn) && insn.kind == ARCH_INSN_SYSCALL;
}

static long syscall_number(const struct arch_regs *regs)
{
	return (long)get_word(regs, A64_X8);
}

static void set_syscall(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6])
{
	set_word(regs, A64_PC, pc);
	set_word(regs, A64_X8, (uint64_t)nr);
	for (unsigned int i = 0; i < 6; i++)
		set_word(regs, X(i), args[i]);
}

static long get_syscall_result(const struct arch_regs *regs)
{
	return (long)get_word(regs, X(0));
}

static void set_number(struct arch_regs *regs, long nr)
{
	set_word(regs, A64_X8, (uint64_t)nr);
}

/* Calls that have done nothing if they fail with EINTR.  With a timeout on the socket: read, readv,
 * accept, recvfrom, recvmsg, recvmmsg, accept4, write, writev, sendfile, connect, sendto, sendmsg,
 * sendmmsg.  Others: semop, semtimedop, rt_sigtimedwait, io_getevents, epoll_pwait, epoll_pwait2,
 * io_uring_enter. */
static bool did_nothing(uint64_t nr)
{
	static const uint16_t call[] = {63,  65,  202, 207, 212, 243, 242, 64, 66,  71, 203,
					206, 211, 269, 193, 192, 137, 4,   22, 441, 426};

	return arch_restart_lists(call, sizeof(call) / sizeof(call[0]), nr);
}

/* The caller sets x0 (restart.call_regset). */
static bool restart_interrupted(struct arch_regs *regs)
{
	if ((int64_t)get_word(regs, X(0)) != -EINTR || !did_nothing(get_word(regs, A64_X8)))
		return false;
	set_word(regs, A64_PC, get_pc(regs) - A64_INSN);
	return true;
}

/* nanosleep, clock_nanosleep, futex, futex_waitv: calls that the kernel ends with
 * -ERESTART_RESTARTBLOCK. */
static bool restartable(uint32_t number)
{
	return number == 101 || number == 115 || number == 98 || number == 449;
}

static long restarted_number(const uint8_t *code, size_t n)
{
	for (size_t at = n & ~3ul; at >= A64_INSN; at -= A64_INSN) {
		const uint8_t *c = code + at - A64_INSN;
		uint32_t insn =
		    c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;

		/* mov x8 or w8, #number */
		if ((insn & 0x7fe0001f) == 0x52800008 && restartable(insn >> 5 & 0xffff))
			return insn >> 5 & 0xffff;
	}
	return -1;
}

static void set_return(struct arch_regs *regs, uint64_t code, uint64_t frame, uint64_t sigreturn)
{
	set_word(regs, A64_PC, code + A64_INSN);
	set_word(regs, A64_SP, frame);
	set_word(regs, A64_LR, sigreturn);
}

const struct arch arch_aarch64 = {
    .name = "aarch64",
    .elf_machine = 183, /* EM_AARCH64 */
    .elf_class = 2,	/* ELFCLASS64 */
    .elf_data = 1,	/* ELFDATA2LSB */
    .word_size = 8,
    .address_bits = 48,
    .insn_align = A64_INSN,
    .mapping_symbols = "xd",
    /* uapi asm-generic/unistd.h */
    .nr = {.mmap = 222,
	   .munmap = 215,
	   .memfd_create = 279,
	   .close = 57,
	   .userfaultfd = 282,
	   .madvise = 233,
	   .ftruncate = 46,
	   .gettid = 178,
	   .getpid = 172,
	   .clone = 220,
	   .wait4 = 260,
	   .prctl = 167,
	   .exit = 93,
	   .rt_sigprocmask = 135,
	   .rt_sigreturn = 139,
	   .sigaltstack = 132,
	   .mprotect = 226,
	   .munlock = 229,
	   .sched_yield = 124,
	   .futex = 98,
	   .shmctl = 195,
	   .restart_syscall = 128,
	   .process_vm_readv = 270},
    .regs = {.regset_size = A64_PRSTATUS,
	     .fp_regset = 2, /* NT_PRFPREG */
	     .get_pc = get_pc,
	     .set_pc = set_pc,
	     .get_sp = get_sp,
	     .get_column = get_column},
    .syscall = {.audit_arch = 0xc00000b7, /* AUDIT_ARCH_AARCH64 */
		.insn_length = A64_INSN,
		.sigset_size = 8,
		.state = syscall_state,
		.before = before_syscall,
		.number = syscall_number,
		.set = set_syscall,
		.result = get_syscall_result},
    .restart = {.call_regset = 0x404, /* NT_ARM_SYSTEM_CALL */
		.set_number = set_number,
		.interrupted = restart_interrupted,
		.restarted_number = restarted_number},
    .emergency = {.syscall_return = {.bytes = {0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6},
				     .length = 8}, /* svc #0; ret */
		  .sigreturn = {{.bytes = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4},
				 .length = 8}, /* mov x8, #139; svc #0 */
				{.bytes = {0x68, 0x11, 0x80, 0x52, 0x01, 0, 0, 0xd4},
				 .length = 8}}, /* mov w8, #139; svc #0 */
		  .frame_bytes = 4096 + 1024,
		  .build_frame = a64_emergency_frame,
		  .set_return = set_return},
    .breakpoint = {.wide = {.bytes = {0, 0, 0x20, 0xd4}, .length = 4}}, /* brk #0 */
    .patch = {.reach = 0x7ff0000,					/* b, less a margin */
	      .decode = a64_decode,
	      .plan = a64_plan_patch,
	      .encode_slot = a64_encode_slot},
    /* columns: x19 to x24, x25 to x28, x29, x30, sp (aadwarf64 4.1) */
    .unwind = {.column = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
			  -1, -1, 0,  1,  2,  3,  4,  5,  8,  9,  10, 11, 6,  15, 7,  -1, -1},
	       .preserved = 0xfff,
	       .call_push = 0,
	       .red_zone = 0, /* AAPCS64 6.4.5 */
	       /* the first record: FPSIMD_MAGIC and its size */
	       .signal_frame = {24, -8, -424, -408, UINT64_MAX, 0x21046508001},
	       .trampolines = aarch64_trampolines},
    /* asm/perf_regs.h: x0 to x29, lr, sp, pc */
    .perf = {.regs_mask = 0x1ffffffff,
	     .column = {-1, -1, -1, -1, -1, -1, -1, -1, -1,	   -1,	      -1,
			-1, -1, -1, -1, -1, -1, -1, -1, 0,	   1,	      2,
			3,  4,	5,  8,	9,  10, 11, 6,	UW_REG_LR, UW_REG_SP, UW_REG_PC},
	     .arg = {0, 1, 2, 3, 4},
	     .result = 0},
    .tls = {.regset = 0x401 /* NT_ARM_TLS */, .above = true},
    .guard = {.kind = ARCH_GUARD_LD},
};
