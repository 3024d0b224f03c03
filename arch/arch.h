/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What differs between architectures: const data and pure functions over bytes, so that all of
 * them can be tested on any host.  No ptrace, no system call, no memory of a target in here.
 * Chosen by the target's ELF header, not by the host.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "arch/frame.h"
#include "formats/column.h"

#define ARCH_MAX_REGSET	  1024
#define ARCH_DWARF_REGS	  34 /* numbers that column[] knows */
#define ARCH_MAX_CALL	  7  /* bytes of a call instruction */
#define ARCH_ARGS	  5
#define ARCH_ARG_ON_STACK 255 /* of perf_arg */

/* Raw general registers as the kernel's NT_PRSTATUS regset has them. */
struct arch_regs {
	_Alignas(16) uint8_t raw[ARCH_MAX_REGSET];
	size_t size; /* bytes in use */
};

/* How a thread that was stopped inside a system call is going to continue. */
enum arch_syscall_state {
	ARCH_NOT_IN_SYSCALL,
	ARCH_IN_SYSCALL, /* interrupted; the kernel restarts it from the exact registers */
};

/* One instruction, as far as patching cares. */
enum arch_insn_kind {
	ARCH_INSN_PLAIN,       /* position independent: copied */
	ARCH_INSN_PC_RELATIVE, /* data access relative to pc: displacement is adjusted */
	ARCH_INSN_JUMP,	       /* direct jump */
	ARCH_INSN_COND_JUMP,   /* direct conditional jump */
	ARCH_INSN_CALL,	       /* direct call */
	ARCH_INSN_INDIRECT,    /* indirect jump or call */
	ARCH_INSN_RETURN,
	ARCH_INSN_SYSCALL,
	ARCH_INSN_TRAP,	       /* breakpoint, undefined instruction: someone else's patch */
	ARCH_INSN_LANDING_PAD, /* endbr64, bti: stays in place */
	ARCH_INSN_INVALID,
};

struct arch_insn {
	enum arch_insn_kind kind;
	uint8_t length;
	bool has_target;
	uint64_t target; /* of direct branches, or the address a pc-relative operand means */
};

/* Bytes to look for in a target's text. */
struct arch_code {
	uint8_t bytes[15];
	uint8_t length; /* 0: none */
	uint8_t pops;	/* of syscall_return: bytes it takes from the stack before it returns */
};

/* Code that a signal handler returns to: with the stack pointer at a frame that has the registers
 * of what was interrupted. */
struct arch_trampoline {
	struct arch_code code;
	const int16_t *at; /* of each column: offset in the frame, -1: not there */
};

/* What a thread gets back by an emergency frame (struct arch, emergency_frame). */
struct arch_emergency {
	const struct arch_regs *regs;
	long again; /* number of the interrupted system call, which is made again; -1: none */
	uint64_t sigmask[2];
	const void *xstate; /* struct arch, fp_regset */
	size_t xstate_size;
	uint64_t syscall_return; /* where that code is in the target */
	uint64_t sigreturn;
	uint8_t sigreturn_form; /* which of struct arch, sigreturn[] it is */
};

/* Why a function cannot be hooked; text by arch_refusal_text(). */
enum arch_refusal {
	ARCH_OK = 0,
	ARCH_REFUSE_SHORT,	 /* the function ends before the window does */
	ARCH_REFUSE_BRANCH_INTO, /* a branch of the function goes into the window */
	ARCH_REFUSE_CALL,	 /* a call lies in the window: its return address would move */
	ARCH_REFUSE_INSN,	 /* an instruction that cannot be relocated */
	ARCH_REFUSE_REACH,	 /* island or operand out of reach */
	ARCH_REFUSE_FOREIGN,	 /* a breakpoint or a foreign jump is at the entry */
	ARCH_REFUSE_RSEQ,	 /* the window lies in a restartable sequence (inject/rseq.h) */
};

/* A planned patch of one function. */
struct arch_patch {
	uint64_t addr;		/* first byte to replace, after a landing pad */
	uint8_t length;		/* bytes replaced (whole instructions) */
	uint8_t insns;		/* instructions replaced */
	uint8_t old_off[8];	/* their offsets from addr */
	uint8_t new_off[8];	/* and where each went in the relocated code */
	uint8_t new_bytes[24];	/* what goes to addr: a jump to the slot's entry, padded */
	uint8_t relocated[128]; /* relocated prologue with its jump back */
	uint8_t relocated_length;
};

/* Where the secret is that glibc mangles pointers with. */
enum arch_guard {
	ARCH_GUARD_NONE, /* they are not mangled */
	ARCH_GUARD_TCB,	 /* in the thread control block */
	ARCH_GUARD_LD,	 /* __pointer_chk_guard of the dynamic linker */
};

/* What find_frames() tells of an address. */
enum arch_mark {
	ARCH_MARK_START,       /* a function may begin here */
	ARCH_MARK_BEHIND_JUMP, /* the same, if there is one at @target, too: a jump there ends this
				*/
	ARCH_MARK_FRAME,       /* a frame was made: CFA - 2 words has the caller's frame pointer */
};
typedef void arch_mark_fn(void *ctx, enum arch_mark mark, uint64_t addr, uint64_t target);

struct arch {
	const char *name; /* x86_64: as in JSON and folder names */
	uint16_t elf_machine;
	uint8_t elf_class;    /* ELFCLASS64 */
	uint8_t elf_data;     /* ELFDATA2LSB */
	uint32_t audit_arch;  /* AUDIT_ARCH_*, as seccomp filters see it */
	size_t regset_size;   /* of NT_PRSTATUS */
	uint32_t fp_regset;   /* NT_* of the floating point and vector registers */
	uint16_t frame_bytes; /* room for an emergency frame without them */
	/* Words of the kernel's that NT_PRSTATUS does not carry: their offsets for PTRACE_PEEKUSER
	 * and where they are kept in arch_regs.raw. */
	struct {
		uint16_t user, at;
	} hidden[2];
	uint8_t nhidden;
	/* A write to executable memory by /proc/PID/mem or PTRACE_POKEDATA crashes the kernel when
	 * the page is a huge one. */
	bool huge_write_crashes;
	uint64_t reach; /* farthest distance of the entry jump, bytes */
	/* 0, or a power of two: code whose addresses are the same above it is entered by a shorter
	 * jump. */
	uint64_t region;
	uint64_t far_reach; /* of the longer jump that is taken when there is no room; 0: none */
	uint32_t red_zone;  /* bytes below the stack pointer that belong to the thread */
	/* What a signal frame holds around the word with the interrupted pc, at so many bytes from
	 * it (asm/ucontext.h, asm/sigcontext.h): a word of which some bits are known, the
	 * interrupted stack pointer, the start and the size of the alternate stack. */
	struct {
		int16_t flags, sp, alt_start, alt_size;
		uint64_t mask, value;
	} signal_frame;
	uint8_t entry_length; /* shortest window in bytes */
	uint8_t syscall_insn_length;
	uint8_t insn_align; /* instructions lie at multiples of it */
	/* Code that any libc or vdso has: a system call with a return behind it, and ways to call
	 * rt_sigreturn, in order of preference (its own restorer, or popping the number). */
	struct arch_code syscall_return, other_return, sigreturn[3];
	/* The offsets of a patch are all places of a window, its end included, where a thread may
	 * be moved: not within a group of instructions that is relocated as one. */
	bool groups;
	/* Bits of a function's symbol, and of a return address, that are no part of the address
	 * (Thumb). */
	uint8_t code_bits;
	uint8_t sigset_size; /* of the kernel's sigset_t, bytes */
	/* Breakpoints: where struct user has the debug registers, 0 when it has none; then the
	 * instructions, for wide code and for narrow (Thumb), after which the PC is theirs. */
	uint16_t debug_registers;
	struct arch_code breakpoint, breakpoint_narrow;
	uint8_t word_size;    /* of a pointer and of a word on the stack, bytes */
	uint8_t address_bits; /* of addresses of user memory; above are tags, or nothing */

	/* The vdso's clock_gettime(), where the agent's time comes from it; NULL: from a counter.
	 */
	const char *vdso_clock;

	/* Thread-local storage (Drepper, "ELF Handling For Thread-Local Storage", 3). */
	struct {
		/* Where the kernel has the thread pointer when get_tp() does not: in the first word
		 * of a register set (NT_ARM_TLS), or given by a ptrace request
		 * (PTRACE_GET_THREAD_AREA).  0: not there. */
		uint32_t regset, request;
		uint16_t bias; /* by this far it points behind what it means (MIPS: 0x7000) */
		bool above;    /* variables lie above it, glibc's struct pthread below */
	} tls;
	/* How glibc mangles what setjmp() saves (its pointer_guard.h): XOR with a secret word, then
	 * a rotation to the left by so many bits. */
	struct {
		enum arch_guard kind;
		uint8_t offset, rotate; /* of the word in the thread control block; bits */
	} guard;

	/* Unwinding: the column (formats/column.h) of each DWARF register, -1: not kept, and the
	 * columns that a function leaves as they were, a bit each.  DWARF's number of the return
	 * address counts as UW_REG_PC where nothing else has it (x86-64), else as UW_REG_LR. */
	int8_t column[ARCH_DWARF_REGS];
	uint32_t preserved;
	/* Of signal handlers, until one of length 0; NULL: call frame information tells of them. */
	const struct arch_trampoline *trampolines;
	/* Bytes that a call pushes; 0: it leaves the return address in UW_REG_LR. */
	uint8_t call_push;

	/* perf samples: the user registers to ask for (asm/perf_regs.h), their columns (-1: none),
	 * and which of them have a call's first arguments and its result.  Mask 0: the kernel way
	 * is not supported. */
	uint64_t perf_regs_mask;
	int8_t perf_column[64];
	uint8_t perf_arg[ARCH_ARGS], perf_result;

	/* Linux system call numbers that are called remotely; -1: does not exist. */
	struct {
		int mmap, munmap, memfd_create, userfaultfd, close, madvise, ftruncate, gettid,
		    getpid, clone, wait4, prctl, exit, rt_sigprocmask, rt_sigreturn, mprotect,
		    munlock, sched_yield, futex, shmctl, restart_syscall, process_vm_readv;
	} nr;

	/* Registers.  All take and change only the bytes of @regs. */
	uint64_t (*get_pc)(const struct arch_regs *regs);
	void (*set_pc)(struct arch_regs *regs, uint64_t pc);
	uint64_t (*get_sp)(const struct arch_regs *regs);
	void (*set_sp)(struct arch_regs *regs, uint64_t sp);
	/* Thread pointer; NULL: it is not among the general registers (tls.regset, tls.request). */
	uint64_t (*get_tp)(const struct arch_regs *regs);
	/* Value of the register in column @n; returns false if there is none. */
	bool (*get_column)(const struct arch_regs *regs, int n, uint64_t *value);
	enum arch_syscall_state (*syscall_state)(const struct arch_regs *regs);
	/* Where the kernel prepares the restart of an interrupted call before a tracer can see it:
	 * are @regs of a thread that stands before a call, whose first @n bytes of code are @code?
	 * NULL: syscall_state() tells. */
	bool (*before_syscall)(const struct arch_regs *regs, const uint8_t *code, size_t n);
	/* The ptrace request (PTRACE_SET_SYSCALL) that changes a call's number at its entry, where
	 * restart_syscall takes the place of an interrupted one and leaves its number in the
	 * registers; 0: it does not. */
	uint32_t change_number;
	/* Number of the system call the thread is in, when ARCH_IN_SYSCALL or before_syscall(). */
	long (*syscall_number)(const struct arch_regs *regs);
	/* Makes @regs execute system call @nr with @args at the syscall instruction at @pc, without
	 * the kernel restarting what was interrupted. */
	void (*set_syscall)(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6]);
	long (*get_syscall_result)(const struct arch_regs *regs); /* value or -errno */

	/* A wait with a timeout that was interrupted is to begin again, with all of its time,
	 * instead of going on by restart_syscall.  Return: whether @regs are of such a one.  NULL
	 * with before_syscall(): there set_number() serves. */
	bool (*restart_whole)(struct arch_regs *regs);
	/* Some calls end by EINTR when a thread is stopped, without any signal (signal(7),
	 * "Interruption of system calls ... by stop signals").  If @regs are of such a one it is
	 * made again, unless a handler runs.  Return: whether @regs were changed. */
	bool (*restart_interrupted)(struct arch_regs *regs);
	/* A recvmmsg() that ended with fewer messages than were asked for: which descriptor was it
	 * of?  -1: not to be seen in @regs; NULL: registers of a call that is over do not tell. */
	int (*received_less)(const struct arch_regs *regs);
	/* Where the result of such a call has replaced its first argument, which comes first in
	 * arch_regs.raw: the register set with the number of the call (NT_ARM_SYSTEM_CALL).  0: its
	 * registers are complete. */
	uint32_t call_regset;
	/* With before_syscall(): another number for the call that @regs are about to make.  The
	 * kernel is told by call_regset or change_number. */
	void (*set_number)(struct arch_regs *regs, long nr);
	/* Of a thread in restart_syscall: which call is it that is restarted, according to the
	 * @n bytes of code that end with its system call instruction?  -1: not to be seen. */
	long (*restarted_number)(const uint8_t *code, size_t n);
	/**
	 * emergency_frame - what lies on the stack of a thread whose registers are changed
	 *
	 * The return of set_return() with the stack at @at ends in rt_sigreturn and gives the
	 * thread back everything in @e.  A system call that was interrupted is made again from its
	 * start.
	 * @out, @size: room at @at, an address aligned to 64
	 * Return: bytes used, 0 when @size does not suffice.
	 */
	size_t (*emergency_frame)(uint8_t *out, size_t size, uint64_t at,
				  const struct arch_emergency *e);
	/* Makes @regs run into the return of the syscall_return code at @code, with the stack at
	 * @frame and the link register, where there is one, at @sigreturn; nothing is restarted. */
	void (*set_return)(struct arch_regs *regs, uint64_t code, uint64_t frame,
			   uint64_t sigreturn);

	/**
	 * decode - one instruction
	 * @code, @size: bytes at @addr, which has the code_bits of the function
	 * Return: false when fewer bytes than an instruction are there or it is undefined.
	 */
	bool (*decode)(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

	/**
	 * frame_insn - what an instruction does to its function's frame; NULL where all code has
	 *	unwind tables
	 * @code, @size: bytes at @addr
	 * @mode: the instruction set, as in bit 0 of a function's address
	 * Return: false when fewer bytes than an instruction are there.
	 */
	bool (*frame_insn)(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
			   uint8_t mode, struct arch_frame_insn *insn);

	/**
	 * find_frames - where functions begin, and where the frame pointer becomes the frame's, as
	 *	far as bytes tell without decoding; NULL: frame_insn tells
	 * @code, @size: bytes at @addr
	 * @mark: called with @ctx; starts may lie in front of what was given before
	 */
	void (*find_frames)(const uint8_t *code, size_t size, uint64_t addr, arch_mark_fn *mark,
			    void *ctx);

	/* Is a call instruction what @code ends with?  @size: ARCH_MAX_CALL; NULL where there is
	 * no find_frames. */
	bool (*ends_in_call)(const uint8_t *code, size_t size);

	/**
	 * plan_patch - relocate the entry of a function
	 * @code, @size: the whole function (all bytes of its symbol), mapped at @addr; scanned for
	 *	branches into the window.  @addr has the code_bits of the symbol.
	 * @slot_entry: where the new jump goes
	 * @relocated_at: address of the relocated copy
	 * Return: ARCH_OK with @patch filled, or the refusal.
	 */
	enum arch_refusal (*plan_patch)(const uint8_t *code, size_t size, uint64_t addr,
					uint64_t slot_entry, uint64_t relocated_at,
					struct arch_patch *patch);

	/**
	 * encode_slot - the code at a slot's entry: descriptor address to the scratch register,
	 *	jump to the agent
	 * @out: at least 48 bytes; @at: its address, with the code_bits of the hooked function;
	 * @desc: address of struct ss_desc
	 * @agent_entry: where to jump
	 * Return: bytes written.
	 */
	size_t (*encode_slot)(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);
};

/* Return: the architecture of an ELF header's class, data and machine, or NULL. */
const struct arch *arch_for_elf(uint8_t elf_class, uint8_t elf_data, uint16_t machine);
/* Return: the name of ELF machine @machine, "unknown" when there is no struct arch for it. */
const char *arch_machine_name(uint16_t machine);
/* Return: the architecture this program is built for: the one it can attach to. */
const struct arch *arch_native(void);
/* Return: the word of a target of @arch's size at @at, in the byte order of this machine. */
static inline uint64_t arch_word(const struct arch *arch, const void *at)
{
	uint64_t word;
	uint32_t half;

	if (arch->word_size == sizeof(half)) {
		memcpy(&half, at, sizeof(half));
		return half;
	}
	memcpy(&word, at, sizeof(word));
	return word;
}
/* Return: a fixed text such as "a branch of the function goes into its first bytes". */
const char *arch_refusal_text(enum arch_refusal refusal);

extern const struct arch arch_x86_64, arch_aarch64, arch_arm, arch_mips64, arch_mips64be;

#endif
