/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Predicts the verdict of the target's seccomp filters.  The filters are classic BPF over struct
 * seccomp_data (linux/seccomp.h).  The kernel runs all of them and the strictest verdict counts.
 */
#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include "attach/seccomp.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

/* uapi linux/ptrace.h, struct ptrace_sud_config */
struct dispatch_config {
	uint64_t mode, selector, offset, length; /* mode 0: off */
};

uint32_t seccomp_run(const struct sock_filter *code, uint32_t n, const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {0};

	for (uint32_t pc = 0; pc < n; pc++) {
		const struct sock_filter *f = &code[pc];
		uint32_t operand = BPF_SRC(f->code) == BPF_X ? x : f->k;

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			if (BPF_MODE(f->code) == BPF_ABS && f->k <= sizeof(*data) - 4)
				memcpy(&a, (const char *)data + f->k, 4);
			else if (BPF_MODE(f->code) == BPF_IMM)
				a = f->k;
			else if (BPF_MODE(f->code) == BPF_LEN)
				a = sizeof(*data);
			else if (BPF_MODE(f->code) == BPF_MEM && f->k < BPF_MEMWORDS)
				a = mem[f->k];
			else
				return SECCOMP_RET_KILL_PROCESS;
			break;
		case BPF_LDX:
			if (BPF_MODE(f->code) == BPF_IMM)
				x = f->k;
			else if (BPF_MODE(f->code) == BPF_LEN)
				x = sizeof(*data);
			else if (BPF_MODE(f->code) == BPF_MEM && f->k < BPF_MEMWORDS)
				x = mem[f->k];
			else
				return SECCOMP_RET_KILL_PROCESS;
			break;
		case BPF_ST:
		case BPF_STX:
			if (f->k >= BPF_MEMWORDS)
				return SECCOMP_RET_KILL_PROCESS;
			mem[f->k] = BPF_CLASS(f->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			switch (BPF_OP(f->code)) {
			case BPF_ADD:
				a += operand;
				break;
			case BPF_SUB:
				a -= operand;
				break;
			case BPF_MUL:
				a *= operand;
				break;
			case BPF_DIV:
				if (!operand)
					return SECCOMP_RET_KILL_PROCESS;
				a /= operand;
				break;
			case BPF_OR:
				a |= operand;
				break;
			case BPF_AND:
				a &= operand;
				break;
			case BPF_XOR:
				a ^= operand;
				break;
			case BPF_LSH:
				a = operand < 32 ? a << operand : 0;
				break;
			case BPF_RSH:
				a = operand < 32 ? a >> operand : 0;
				break;
			case BPF_NEG:
				a = -a;
				break;
			default:
				return SECCOMP_RET_KILL_PROCESS;
			}
			break;
		case BPF_JMP: {
			bool taken;

			switch (BPF_OP(f->code)) {
			case BPF_JA:
				if (f->k >= n - pc)
					return SECCOMP_RET_KILL_PROCESS;
				pc += f->k;
				continue;
			case BPF_JEQ:
				taken = a == operand;
				break;
			case BPF_JGT:
				taken = a > operand;
				break;
			case BPF_JGE:
				taken = a >= operand;
				break;
			case BPF_JSET:
				taken = a & operand;
				break;
			default:
				return SECCOMP_RET_KILL_PROCESS;
			}
			pc += taken ? f->jt : f->jf;
			break;
		}
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? a : f->k;
		case BPF_MISC:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				x = a;
			else
				a = x;
			break;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

struct seccomp_data seccomp_call(const struct arch *arch, long nr, const uint64_t args[6],
				 uint64_t insn_addr)
{
	struct seccomp_data data = {.nr = (int)nr,
				    .arch = arch->syscall.audit_arch,
				    .instruction_pointer = insn_addr + arch->syscall.insn_length};

	for (int i = 0; args && i < 6; i++)
		data.args[i] = arch->word_size == 4 ? (uint32_t)args[i] : args[i];
	return data;
}

int seccomp_allows(struct target *t, struct thread *th, long nr, const uint64_t args[6],
		   uint64_t insn_addr)
{
	struct seccomp_data data = seccomp_call(t->arch, nr, args, insn_addr);
	struct proc_status st;

	if (proc_status_read(t->pid, th->tid, &st))
		return -ESRCH;
	if (!st.seccomp)
		return 1;
	if (st.seccomp == SECCOMP_MODE_STRICT)
		return 0;
	for (unsigned long i = 0;; i++) {
		long n = ptrace(PTRACE_SECCOMP_GET_FILTER, th->tid, i, 0);
		struct sock_filter *code;
		uint32_t answer;

		if (n < 0)
			return errno == ENOENT && i ? 1 : -errno;
		code = calloc((size_t)n, sizeof(*code));
		if (!code)
			return -ENOMEM;
		if (ptrace(PTRACE_SECCOMP_GET_FILTER, th->tid, i, code) != n) {
			free(code);
			return -EIO;
		}
		answer = seccomp_run(code, (uint32_t)n, &data) & SECCOMP_RET_ACTION_FULL;
		free(code);
		if (answer != SECCOMP_RET_ALLOW && answer != SECCOMP_RET_LOG)
			return 0;
	}
}

bool seccomp_forbids(struct target *t, struct thread *th, long nr, const uint64_t args[6])
{
	int allowed = seccomp_allows(t, th, nr, args, t->code.syscall_return);
	struct proc_status st;

	if (allowed >= 0 || allowed == -ESRCH)
		return !allowed;
	return !proc_status_read(t->pid, th->tid, &st) && st.filters > t->filters_asked;
}

enum dispatch seccomp_dispatch(const struct target *t, const struct thread *th)
{
	struct dispatch_config config = {0};
	uint8_t selected = 1;

	if (ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, th->tid,
		   sizeof(config), &config) ||
	    !config.mode)
		return DISPATCH_KERNEL;
	if (config.selector && mem_read(&t->mem, config.selector, &selected, sizeof(selected)))
		return DISPATCH_SIGNAL;
	return selected ? DISPATCH_SIGNAL : DISPATCH_BOTH;
}
