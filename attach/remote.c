/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls executed by one thread of the target, the carrier.  No byte of text is written and
 * no trap instruction is used: the thread's registers are pointed at a syscall instruction that
 * is already there, and ptrace stops it at the call's entry and exit.
 *
 * At the end the carrier is brought to a stop of our interrupt again before its registers come
 * back: only from there does the kernel finish an interrupted system call itself, with the time
 * that was left (attach/threads.c, digest()).
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"

#define RSEQ_CS_OFFSET 8 /* struct rseq, uapi linux/rseq.h */
#define CHUNK	       65536
#define WAIT_MS	       2000

static bool in_rseq(struct target *t, struct thread *th)
{
	struct __ptrace_rseq_configuration conf;
	uint64_t cs = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, th->tid, sizeof(conf), &conf) <= 0 ||
	    !conf.rseq_abi_pointer)
		return false;
	return !mem_read(&t->mem, conf.rseq_abi_pointer + RSEQ_CS_OFFSET, &cs, sizeof(cs)) && cs;
}

/* Lower is better; the kernel restores an interrupted call exactly, but why make it. */
static int rank(struct target *t, struct thread *th)
{
	if (thread_get_regs(t, th))
		return -1;
	if (in_rseq(t, th))
		return 3;
	return t->arch->syscall_state(&th->regs) == ARCH_IN_SYSCALL ? 2 : 1;
}

/* Address of a system call instruction in executable memory: the vdso's, else anybody's. */
static uint64_t find_insn(struct target *t)
{
	size_t n = t->arch->syscall_insn_length;
	uint64_t found = 0;
	struct maps maps;
	uint8_t *buf;

	if (maps_read(t->pid, &maps))
		return 0;
	buf = malloc(CHUNK);
	for (int pass = 0; pass < 2 && buf && !found; pass++) {
		vec_for_each (&maps.list, m) {
			if (!m->exec || !m->read || (pass == 0) != !strcmp(m->path, "[vdso]") ||
			    !strcmp(m->path, "[vsyscall]"))
				continue;
			for (uint64_t at = m->start; at < m->end && !found; at += CHUNK - 16) {
				ssize_t got = mem_read_some(
				    &t->mem, at, buf, m->end - at < CHUNK ? m->end - at : CHUNK);
				uint8_t *hit;

				if (got < (ssize_t)n)
					break;
				hit = memmem(buf, (size_t)got, t->arch->syscall_insn, n);
				if (hit)
					found = at + (uint64_t)(hit - buf);
			}
			if (found)
				break;
		}
	}
	free(buf);
	maps_free(&maps);
	return found;
}

int remote_begin(struct remote *r, struct target *t, struct mp_err *err)
{
	uint64_t all = UINT64_MAX;
	int best = 4;

	memset(r, 0, sizeof(*r));
	r->t = t;
	vec_for_each (&t->threads, it) {
		int score = rank(t, *it);

		if (score > 0 && score < best) {
			best = score;
			r->carrier = *it;
			if (best == 1)
				break;
		}
	}
	if (!r->carrier)
		return mp_fail(err, MP_EXIT_FAILURE, -EBUSY,
			       "no thread of process %d can be asked to make a system call",
			       t->pid);
	r->syscall_insn = find_insn(t);
	if (!r->syscall_insn)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOENT,
			       "process %d has no system call instruction mapped", t->pid);
	r->saved = r->carrier->regs;
	if (ptrace(PTRACE_GETSIGMASK, r->carrier->tid, sizeof(r->sigmask), &r->sigmask) ||
	    ptrace(PTRACE_SETSIGMASK, r->carrier->tid, sizeof(all), &all))
		return mp_fail(err, MP_EXIT_FAILURE, -errno,
			       "cannot block the signals of thread %d: %s", r->carrier->tid,
			       strerror(errno));
	r->active = true;
	return 0;
}

/* Waits for a stop of the carrier.  Return: its wait status, or -errno. */
static int wait_stop(struct remote *r)
{
	struct deadline deadline = deadline_in_ms(WAIT_MS);
	int status;

	for (;;) {
		pid_t got = waitpid(r->carrier->tid, &status, __WALL | WNOHANG);

		if (got < 0)
			return -ESRCH;
		if (got == 0) {
			if (deadline_passed(&deadline))
				return -ETIMEDOUT;
			usleep(20);
			continue;
		}
		if (!WIFSTOPPED(status)) {
			r->carrier->state = THREAD_GONE;
			return -ESRCH;
		}
		return status;
	}
}

/* Runs on to the next system call stop. */
static int to_syscall_stop(struct remote *r)
{
	for (int i = 0; i < 100; i++) {
		int status;

		if (ptrace(PTRACE_SYSCALL, r->carrier->tid, 0, 0))
			return -errno;
		status = wait_stop(r);
		if (status < 0)
			return status;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) || status >> 16 == PTRACE_EVENT_CLONE ||
		    status >> 16 == PTRACE_EVENT_FORK || status >> 16 == PTRACE_EVENT_VFORK) {
			r->last_event = status >> 16;
			if (r->last_event)
				ptrace(PTRACE_GETEVENTMSG, r->carrier->tid, 0, &r->event_message);
			if (!r->last_event)
				return 0;
		}
	}
	return -EBUSY;
}

int remote_syscall(struct remote *r, long nr, const uint64_t args[6], long *result)
{
	struct arch_regs regs = r->saved;
	int ret;

	r->t->arch->set_syscall(&regs, r->syscall_insn, nr, args);
	ret = thread_put_regs(r->t, r->carrier, &regs);
	if (!ret)
		ret = to_syscall_stop(r); /* entry */
	if (!ret)
		ret = to_syscall_stop(r); /* exit */
	if (ret)
		return ret;
	r->carrier->regs_valid = false;
	ret = thread_get_regs(r->t, r->carrier);
	r->carrier->regs_valid = false;
	if (ret)
		return ret;
	*result = r->t->arch->get_syscall_result(&r->carrier->regs);
	return 0;
}

uint64_t remote_string(struct remote *r, const char *text)
{
	uint64_t at =
	    (r->t->arch->get_sp(&r->saved) - r->t->arch->red_zone - sizeof(r->scratch)) & ~15ull;
	uint32_t n = (uint32_t)strlen(text) + 1;

	if (n > sizeof(r->scratch) || r->scratch_len)
		return 0;
	if (mem_read(&r->t->mem, at, r->scratch, n))
		return 0;
	r->scratch_addr = at;
	r->scratch_len = n;
	return mem_write(&r->t->mem, at, text, n) ? 0 : at;
}

int remote_end(struct remote *r)
{
	int ret = 0, status;

	if (!r->active)
		return 0;
	r->active = false;
	if (r->carrier->state == THREAD_GONE)
		return -ESRCH;
	if (r->scratch_len)
		ret = mem_write(&r->t->mem, r->scratch_addr, r->scratch, r->scratch_len);
	for (int i = 0; i < 100; i++) {
		if (ptrace(PTRACE_INTERRUPT, r->carrier->tid, 0, 0) ||
		    ptrace(PTRACE_CONT, r->carrier->tid, 0, 0))
			return -errno;
		status = wait_stop(r);
		if (status < 0)
			return status;
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
	}
	if (thread_put_regs(r->t, r->carrier, &r->saved) ||
	    ptrace(PTRACE_SETSIGMASK, r->carrier->tid, sizeof(r->sigmask), &r->sigmask))
		return -errno;
	r->carrier->regs_valid = false;
	return ret;
}
