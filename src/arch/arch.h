/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The differences between architectures: constant data and pure functions over bytes, so that all
 * of them can be tested on any host.  Nothing here uses ptrace, makes a system call or reads a
 * target's memory.  Chosen by the target's ELF header, not by the host.
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
#define ARCH_DWARF_REGS	  34 /* DWARF register numbers in column[] */
#define ARCH_MAX_CALL	  7  /* bytes of the longest call instruction */
#define ARCH_ARGS	  5
#define ARCH_ARG_ON_STACK 255 /* value in perf_arg */

/* Raw general registers, laid out as in the kernel's NT_PRSTATUS register set. */
struct arch_regs {
	_Alignas(16) uint8_t raw[ARCH_MAX_REGSET];
	size_t size; /* bytes in use */
};

/* State of a stopped thread with respect to system calls. */
enum arch_syscall_state {
	ARCH_NOT_IN_SYSCALL,
	ARCH_IN_SYSCALL, /* interrupted; the kernel restarts it from the exact registers */
};

/* One instruction, as far as it matters for patching. */
enum arch_insn_kind {
	ARCH_INSN_PLAIN,       /* position independent: copied */
	ARCH_INSN_PC_RELATIVE, /* data access relative to the pc: the displacement is adjusted */
	ARCH_INSN_JUMP,	       /* direct jump */
	ARCH_INSN_COND_JUMP,   /* direct conditional jump */
	ARCH_INSN_CALL,	       /* direct call */
	ARCH_INSN_INDIRECT,    /* indirect jump or call */
	ARCH_INSN_RETURN,
	ARCH_INSN_SYSCALL,
	ARCH_INSN_TRAP,	       /* breakpoint, undefined instruction: another tool's patch */
	ARCH_INSN_LANDING_PAD, /* endbr64, bti: stays in place */
	ARCH_INSN_INVALID,
};

struct arch_insn {
	enum arch_insn_kind kind;
	uint8_t length;
	bool has_target;
	uint64_t target; /* of a direct branch or a pc-relative operand */
};

/* A code sequence to search for in a target's text. */
struct arch_code {
	uint8_t bytes[15];
	uint8_t length; /* 0: none */
	uint8_t pops;	/* of syscall_return: bytes that it pops before it returns */
};

/* Code that a signal handler returns to; the stack pointer is then at a frame with the registers of
 * the interrupted code. */
struct arch_trampoline {
	struct arch_code code;
	const int16_t *at; /* by column: offset in the frame, -1: not in it */
};

/* The state of a thread that an emergency frame restores (struct arch, emergency_frame). */
struct arch_emergency {
	const struct arch_regs *regs;
	long again; /* number of the interrupted system call, which is executed again; -1: none */
	uint64_t sigmask[2];
	const void *xstate; /* struct arch, fp_regset */
	size_t xstate_size;
	uint64_t syscall_return; /* address of that code in the target */
	uint64_t sigreturn;
	uint8_t sigreturn_form; /* index in struct arch, sigreturn[] */
};

/* Reasons why a function cannot be hooked; text by arch_refusal_text(). */
enum arch_refusal {
	ARCH_OK = 0,
	ARCH_REFUSE_SHORT,	 /* the function ends inside the window */
	ARCH_REFUSE_BRANCH_INTO, /* a branch of the function leads into the window */
	ARCH_REFUSE_CALL,	 /* a call is in the window: its return address would move */
	ARCH_REFUSE_INSN,	 /* an instruction that cannot be relocated */
	ARCH_REFUSE_REACH,	 /* island or operand is out of reach */
	ARCH_REFUSE_FOREIGN,	 /* a breakpoint or another tool's jump is at the entry */
	ARCH_REFUSE_RSEQ,	 /* the window is in a restartable sequence (inject/hooks/rseq.h) */
};

/* A planned patch of one function. */
struct arch_patch {
	uint64_t addr;		/* first byte to replace, after a landing pad */
	uint8_t length;		/* bytes replaced (whole instructions) */
	uint8_t insns;		/* instructions replaced */
	uint8_t old_off[8];	/* their offsets from addr */
	uint8_t new_off[8];	/* and their offsets in the relocated code */
	uint8_t new_bytes[24];	/* the bytes for addr: a jump to the slot's entry, padded */
	uint8_t relocated[128]; /* relocated instructions with the jump back */
	uint8_t relocated_length;
};

/* Location of the secret that glibc mangles pointers with. */
enum arch_guard {
	ARCH_GUARD_NONE, /* pointers are not mangled */
	ARCH_GUARD_TCB,	 /* in the thread control block */
	ARCH_GUARD_LD,	 /* __pointer_chk_guard of the dynamic linker */
};

/* Marks that find_frames() reports for an address. */
enum arch_mark {
	ARCH_MARK_START,       /* a function can begin here */
	ARCH_MARK_BEHIND_JUMP, /* same, if @target starts a function, too (a jump leads there) */
	ARCH_MARK_FRAME, /* the frame is set up: CFA - 2 words has the caller's frame pointer */
};
typedef void arch_mark_fn(void *ctx, enum arch_mark mark, uint64_t addr, uint64_t target);

struct arch {
	const char *name; /* for example x86_64, as in JSON and folder names */
	uint16_t elf_machine;
	uint8_t elf_class;    /* ELFCLASS64 */
	uint8_t elf_data;     /* ELFDATA2LSB */
	uint32_t audit_arch;  /* AUDIT_ARCH_*, as seccomp filters see it */
	size_t regset_size;   /* of NT_PRSTATUS */
	uint32_t fp_regset;   /* NT_* of the floating point and vector register set */
	uint16_t frame_bytes; /* room for an emergency frame, without fp_regset */
	/* Words of the kernel's register state that NT_PRSTATUS does not contain: their offsets for
	 * PTRACE_PEEKUSER and their place in arch_regs.raw. */
	struct {
		uint16_t user, at;
	} hidden[2];
	uint8_t nhidden;
	/* A write to executable memory by /proc/PID/mem or PTRACE_POKEDATA crashes the kernel if
	 * the page is a huge one. */
	bool huge_write_crashes;
	uint64_t reach; /* longest distance of the entry jump, in bytes */
	/* 0, or a power of two: the size of an aligned region inside which a shorter jump
	 * suffices. */
	uint64_t region;
	uint64_t far_reach; /* reach of the longer jump, for use if there is no free memory nearer;
			       0: none */
	uint32_t red_zone;  /* bytes below the stack pointer that belong to the thread */
	/* Layout of a signal frame around the word with the interrupted pc, as offsets in bytes
	 * from that word (asm/ucontext.h, asm/sigcontext.h): a word of which some bits are known,
	 * the interrupted stack pointer, the start and the size of the alternate stack. */
	struct {
		int16_t flags, sp, alt_start, alt_size;
		uint64_t mask, value;
	} signal_frame;
	uint8_t entry_length; /* shortest window in bytes */
	uint8_t syscall_insn_length;
	uint8_t insn_align; /* instructions are at multiples of it */
	/* Code that is in every libc or vDSO: a system call followed by a return, and ways to call
	 * rt_sigreturn, in order of preference (a restorer, or code that pops the number). */
	struct arch_code syscall_return, other_return, sigreturn[3];
	/* A patch's offsets are all positions of the window, including its end, to and from which a
	 * thread can be moved.  A thread inside a group of instructions that is relocated as one
	 * cannot. */
	bool groups;
	/* Bits of a function's symbol, and of a return address, that are not part of the address
	 * (Thumb). */
	uint8_t code_bits;
	uint8_t sigset_size; /* bytes of the kernel's sigset_t */
	/* Breakpoints: the offset of the debug registers in struct user, 0 if there are none; then
	 * the instructions for wide and for narrow (Thumb) code.  A thread that stops there has the
	 * instruction's own address as its pc. */
	uint16_t debug_registers;
	struct arch_code breakpoint, breakpoint_narrow;
	uint8_t word_size;    /* bytes of a pointer and of a word on the stack */
	uint8_t address_bits; /* of addresses of user memory; higher bits are tags or unused */

	/* The vDSO's clock_gettime() if the agent's time comes from it; NULL: from a counter. */
	const char *vdso_clock;

	/* Thread-local storage (Drepper, "ELF Handling For Thread-Local Storage", 3). */
	struct {
		/* Source of the thread pointer if there is no get_tp(): the first word of a
		 * register set (NT_ARM_TLS), or a ptrace request (PTRACE_GET_THREAD_AREA).  0: not
		 * used. */
		uint32_t regset, request;
		uint16_t bias; /* distance of the thread pointer's value from its nominal place
				  (MIPS: 0x7000) */
		bool above;    /* variables are above it, glibc's struct pthread below */
	} tls;
	/* How glibc mangles what setjmp() saves (its pointer_guard.h): XOR with a secret word, then
	 * a rotation to the left. */
	struct {
		enum arch_guard kind;
		uint8_t offset, rotate; /* of the word in the thread control block; bits */
	} guard;

	/* Unwinding: the column (formats/column.h) of each DWARF register, -1: not kept; and a bit
	 * for each column that a function preserves.  DWARF's number of the return address is
	 * UW_REG_PC if no other register has that column (x86-64), else UW_REG_LR. */
	int8_t column[ARCH_DWARF_REGS];
	uint32_t preserved;
	/* Signal trampolines, until one of length 0; NULL: they have call frame information. */
	const struct arch_trampoline *trampolines;
	/* Bytes that a call pushes; 0: it leaves the return address in UW_REG_LR. */
	uint8_t call_push;

	/* perf samples: the user registers to request (asm/perf_regs.h), their columns (-1: none),
	 * and which of them have a call's first arguments and its result.  Mask 0: --via=kernel is
	 * not supported. */
	uint64_t perf_regs_mask;
	int8_t perf_column[64];
	uint8_t perf_arg[ARCH_ARGS], perf_result;

	/* Linux system call numbers for injected calls and filters; -1: does not exist. */
	struct {
		int mmap, munmap, memfd_create, userfaultfd, close, madvise, ftruncate, gettid,
		    getpid, clone, wait4, prctl, exit, rt_sigprocmask, rt_sigreturn, mprotect,
		    munlock, sched_yield, futex, shmctl, restart_syscall, process_vm_readv;
	} nr;

	/* Registers.  All functions read and change only the bytes of @regs. */
	uint64_t (*get_pc)(const struct arch_regs *regs);
	void (*set_pc)(struct arch_regs *regs, uint64_t pc);
	uint64_t (*get_sp)(const struct arch_regs *regs);
	void (*set_sp)(struct arch_regs *regs, uint64_t sp);
	/* Thread pointer; NULL: it is not among the general registers (see tls). */
	uint64_t (*get_tp)(const struct arch_regs *regs);
	/* Value of the register in column @n.  Return: false if there is none. */
	bool (*get_column)(const struct arch_regs *regs, int n, uint64_t *value);
	enum arch_syscall_state (*syscall_state)(const struct arch_regs *regs);
	/* For architectures where the kernel prepares the restart of an interrupted call before a
	 * tracer can see it: are @regs of a thread that is about to make a call?  @code: its next
	 * @n bytes of code.  NULL: syscall_state() shows it. */
	bool (*before_syscall)(const struct arch_regs *regs, const uint8_t *code, size_t n);
	/* The ptrace request (PTRACE_SET_SYSCALL) that changes a call's number at its entry, if
	 * restart_syscall replaces an interrupted call but leaves that call's number in the
	 * registers; 0: not so. */
	uint32_t change_number;
	/* Number of the system call the thread is in, if ARCH_IN_SYSCALL or before_syscall(). */
	long (*syscall_number)(const struct arch_regs *regs);
	/* Makes @regs execute system call @nr with @args at the system call instruction at @pc, and
	 * prevents the kernel from restarting the interrupted call. */
	void (*set_syscall)(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6]);
	long (*get_syscall_result)(const struct arch_regs *regs); /* value or -errno */

	/* If @regs are of an interrupted wait with a timeout, makes it begin again with its full
	 * time instead of continuing by restart_syscall.  Return: whether they are.  NULL with
	 * before_syscall(): set_number() is used there. */
	bool (*restart_whole)(struct arch_regs *regs);
	/* Some calls fail with EINTR when a thread is stopped, without any signal (signal(7),
	 * "Interruption of system calls ... by stop signals").  If @regs are of such a call, makes
	 * the thread repeat it, unless a handler runs.  Return: whether @regs were changed. */
	bool (*restart_interrupted)(struct arch_regs *regs);
	/* Return: the descriptor of a recvmmsg() that ended with fewer messages than were
	 * requested; -1: @regs show no such call.  NULL: the registers of a finished call do not
	 * show it. */
	int (*received_less)(const struct arch_regs *regs);
	/* If the result of such a call has replaced its first argument (first in arch_regs.raw):
	 * the register set with the number of the call (NT_ARM_SYSTEM_CALL).  0: the registers are
	 * complete. */
	uint32_t call_regset;
	/* With before_syscall(): sets another number for the call that @regs are about to make.
	 * The kernel's copy is set by call_regset or change_number. */
	void (*set_number)(struct arch_regs *regs, long nr);
	/* Return: which call is restarted in a thread in restart_syscall, according to the @n bytes
	 * of code that end with its system call instruction; -1: not visible. */
	long (*restarted_number)(const uint8_t *code, size_t n);
	/**
	 * emergency_frame() - build the frame that restores a thread whose registers are changed
	 *
	 * After set_return() with the stack at @at, the thread executes rt_sigreturn, which
	 * restores everything in @e.  An interrupted system call is executed again from its start.
	 * @out, @size: room for the frame, which will be at @at, an address aligned to 64
	 * Return: bytes used, 0 if @size does not suffice.
	 */
	size_t (*emergency_frame)(uint8_t *out, size_t size, uint64_t at,
				  const struct arch_emergency *e);
	/* Makes @regs execute the return of the syscall_return code at @code, with the stack at
	 * @frame and the link register, if there is one, at @sigreturn; nothing is restarted. */
	void (*set_return)(struct arch_regs *regs, uint64_t code, uint64_t frame,
			   uint64_t sigreturn);

	/**
	 * decode() - decode one instruction
	 * @code, @size: bytes at @addr, which has the code_bits of the function
	 * Return: false if @size is less than an instruction or the instruction is undefined.
	 */
	bool (*decode)(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

	/**
	 * frame_insn() - what an instruction does to its function's frame
	 * NULL if all code has unwind tables.
	 * @code, @size: bytes at @addr
	 * @mode: the instruction set, as in bit 0 of a function's address
	 * Return: false if @size is less than an instruction.
	 */
	bool (*frame_insn)(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
			   uint8_t mode, struct arch_frame_insn *insn);

	/**
	 * find_frames() - mark where functions begin and frame pointers are set up
	 * Decides by bytes, without decoding instructions.  NULL: frame_insn() is used.
	 * @code, @size: bytes at @addr
	 * @mark: called with @ctx; starts are not reported in ascending order
	 */
	void (*find_frames)(const uint8_t *code, size_t size, uint64_t addr, arch_mark_fn *mark,
			    void *ctx);

	/* Does @code end with a call instruction?  @size: ARCH_MAX_CALL; NULL if there is no
	 * find_frames(). */
	bool (*ends_in_call)(const uint8_t *code, size_t size);

	/**
	 * plan_patch() - relocate the entry of a function
	 * @code, @size: the whole function (all bytes of its symbol), mapped at @addr; scanned for
	 *	branches into the window.  @addr has the code_bits of the symbol.
	 * @slot_entry: target of the new jump
	 * @relocated_at: address of the relocated copy
	 * Return: ARCH_OK with @patch filled, or the refusal.
	 */
	enum arch_refusal (*plan_patch)(const uint8_t *code, size_t size, uint64_t addr,
					uint64_t slot_entry, uint64_t relocated_at,
					struct arch_patch *patch);

	/**
	 * encode_slot() - the code at a slot's entry: load the descriptor's address into the
	 * scratch register, jump to the agent
	 * @out: at least 48 bytes
	 * @at: its address, with the code_bits of the hooked function
	 * @desc: address of struct ss_desc
	 * @agent_entry: target of the jump
	 * Return: bytes written.
	 */
	size_t (*encode_slot)(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);
};

/* Return: the architecture of an ELF header's class, data and machine, or NULL. */
const struct arch *arch_for_elf(uint8_t elf_class, uint8_t elf_data, uint16_t machine);
/* Return: the name of ELF machine @machine, "unknown" if there is no struct arch for it. */
const char *arch_machine_name(uint16_t machine);
/* Return: the architecture that memprof is built for, the only one it can attach to. */
const struct arch *arch_native(void);
/* Return: the word of a target at @at, of the size in @arch, in the byte order of this machine. */
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
/* Return: a constant text such as "a branch of the function goes into its first bytes". */
const char *arch_refusal_text(enum arch_refusal refusal);

extern const struct arch arch_x86_64, arch_aarch64, arch_arm, arch_mips64, arch_mips64be;

#endif
