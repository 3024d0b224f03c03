/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Registers of stopped threads. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include "attach/target.h"

static int get_hidden(const struct arch *a, struct thread *th)
{
	for (uint8_t i = 0; i < a->regs.nhidden; i++) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKUSER, th->tid, a->regs.hidden[i].user, 0);
		if (errno)
			return -errno;
		memcpy(th->regs.raw + a->regs.hidden[i].at, &word, sizeof(word));
	}
	return 0;
}

/* Writes the hidden registers that are zero (@zero), or those that are not. */
static int put_hidden(const struct arch *a, const struct thread *th, const struct arch_regs *regs,
		      bool zero)
{
	for (uint8_t i = 0; i < a->regs.nhidden; i++) {
		long word;

		memcpy(&word, regs->raw + a->regs.hidden[i].at, sizeof(word));
		if (!word == zero && ptrace(PTRACE_POKEUSER, th->tid, a->regs.hidden[i].user, word))
			return -errno;
	}
	return 0;
}

int thread_get_regs(struct target *t, struct thread *th)
{
	struct iovec iov = {th->regs.raw, sizeof(th->regs.raw)};

	if (th->regs_valid)
		return 0;
	if (th->state != THREAD_STOPPED && th->state != THREAD_GROUP_STOPPED)
		return -EBUSY;
	if (ptrace(PTRACE_GETREGSET, th->tid, NT_PRSTATUS, &iov))
		return -errno;
	if (iov.iov_len != t->arch->regs.regset_size)
		return -ENOEXEC;
	th->regs.size = iov.iov_len;
	if (get_hidden(t->arch, th))
		return -errno;
	th->regs_valid = true;
	return 0;
}

uint64_t thread_get_tp(const struct target *t, const struct thread *th)
{
	const struct arch *a = t->arch;
	uint8_t word[sizeof(uint64_t)] = {0};
	struct iovec iov = {word, sizeof(word)};

	if (a->regs.get_tp)
		return a->regs.get_tp(&th->regs);
	if (a->tls.regset &&
	    !ptrace(PTRACE_GETREGSET, th->tid, (void *)(uintptr_t)a->tls.regset, &iov))
		return arch_word(a, word);
	if (a->tls.request && !ptrace((enum __ptrace_request)a->tls.request, th->tid, NULL, word))
		return arch_word(a, word);
	return 0;
}

bool thread_owns_stack(const struct target *t, const struct thread *th, const struct maps *maps,
		       uint64_t addr)
{
	const struct map *m = maps_find(maps, addr);
	uint64_t tp;

	if (!m)
		return false;
	if (th->tid == t->pid)
		return !strcmp(m->path, "[stack]");
	/* The thread's control block is at the top of its stack. */
	tp = thread_get_tp(t, th) - t->arch->tls.bias;
	return tp >= m->start && tp < m->end && addr < tp;
}

int thread_put_regs(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct iovec iov = {(void *)regs->raw, regs->size};

	/* The mark of a call to restart is set before the registers of that call are written, and
	 * cleared after them, so that the kernel restarts nothing in between. */
	if (put_hidden(t->arch, th, regs, false) ||
	    ptrace(PTRACE_SETREGSET, th->tid, NT_PRSTATUS, &iov) ||
	    put_hidden(t->arch, th, regs, true))
		return -errno;
	th->regs = *regs;
	return 0;
}
