/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/emergency.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define CHUNK	     (256u << 10)
#define LARGE	     (4u << 20)
#define MAX_XSTATE   (16u << 10) /* with AMX: 11 KiB */
#define STRING_BYTES 256
#define ALIGN	     64
#define LOOK_BACK    24 /* bytes of code before a system call that can load its number */
#define NFORMS	     (sizeof(((struct arch *)0)->emergency.sigreturn) / sizeof(struct arch_code))

static bool is_there(struct target *t, uint64_t addr, const struct arch_code *code)
{
	uint8_t now[sizeof(code->bytes)];

	return addr && !mem_read(&t->mem, addr, now, code->length) &&
	       !memcmp(now, code->bytes, code->length);
}

/* The code sequences to find, and their addresses; 0: not found yet. */
struct search {
	const struct arch *arch;
	uint64_t syscall_return, other_return, sigreturn[NFORMS];
};

static bool found_all(const struct search *s)
{
	return s->syscall_return && s->sigreturn[0];
}

/* @buf holds the code at @at, the start of a page. */
static uint64_t find_code(const struct arch *arch, const uint8_t *buf, size_t n, uint64_t at,
			  const struct arch_code *code)
{
	const uint8_t *from = buf, *hit;

	while (code->length &&
	       (hit = memmem(from, n - (size_t)(from - buf), code->bytes, code->length))) {
		if ((hit - buf) % arch->insn_align == 0)
			return at + (uint64_t)(hit - buf);
		from = hit + 1;
	}
	return 0;
}

static void search_map(struct target *t, const struct map *m, uint8_t *buf, struct search *s)
{
	for (uint64_t at = m->start; at < m->end && !found_all(s); at += CHUNK - 16) {
		size_t want = m->end - at < CHUNK ? m->end - at : CHUNK;
		ssize_t got = mem_read_some(&t->mem, at, buf, want);

		if (got <= 0)
			return;
		if (!s->syscall_return)
			s->syscall_return = find_code(s->arch, buf, (size_t)got, at,
						      &s->arch->emergency.syscall_return);
		if (!s->other_return)
			s->other_return = find_code(s->arch, buf, (size_t)got, at,
						    &s->arch->emergency.other_return);
		for (size_t k = 0; k < NFORMS; k++) {
			if (!s->sigreturn[k])
				s->sigreturn[k] = find_code(s->arch, buf, (size_t)got, at,
							    &s->arch->emergency.sigreturn[k]);
		}
	}
}

int emergency_find(struct target *t)
{
	struct search s = {.arch = t->arch};
	struct target_code *c = &t->code;
	struct maps maps;
	uint8_t *buf;
	int err;

	if (is_there(t, c->syscall_return,
		     c->other_form ? &t->arch->emergency.other_return
				   : &t->arch->emergency.syscall_return) &&
	    is_there(t, c->sigreturn, &t->arch->emergency.sigreturn[c->sigreturn_form]))
		return 0;
	memset(c, 0, sizeof(*c));
	err = maps_read(t->pid, &maps);
	if (err)
		return err;
	buf = malloc(CHUNK);
	/* A libc usually has all of it, so large programs are searched last. */
	for (int large = 0; large < 2 && buf; large++) {
		vec_for_each (&maps.list, m) {
			/* Only files and the vDSO: generated code, and memprof's own, can disappear
			 * while the addresses are still in use. */
			if (m->exec && m->read && (m->ino || !strcmp(m->path, "[vdso]")) &&
			    !found_all(&s) && (m->end - m->start > LARGE) == large)
				search_map(t, m, buf, &s);
		}
	}
	free(buf);
	maps_free(&maps);
	c->other_form = !s.syscall_return;
	c->syscall_return = c->other_form ? s.other_return : s.syscall_return;
	c->return_pops = c->other_form ? t->arch->emergency.other_return.pops
				       : t->arch->emergency.syscall_return.pops;
	for (size_t k = NFORMS; k-- > 0;) {
		if (s.sigreturn[k]) {
			c->sigreturn = s.sigreturn[k];
			c->sigreturn_form = (uint8_t)k;
		}
	}
	return c->syscall_return && c->sigreturn ? 0 : -ENOENT;
}

bool emergency_room(struct target *t, const struct maps *maps, struct thread *th)
{
	const struct map *m;
	uint64_t sp;

	if (thread_get_regs(t, th))
		return false;
	sp = t->arch->regs.get_sp(&th->regs);
	m = maps_find(maps, sp);
	return m && m->write &&
	       sp - m->start > t->arch->unwind.red_zone + MAX_XSTATE +
				   t->arch->emergency.frame_bytes + STRING_BYTES;
}

static int get_xstate(const struct arch *arch, struct thread *th, uint8_t *buf, size_t *size)
{
	struct iovec iov = {buf, MAX_XSTATE};

	if (ptrace(PTRACE_GETREGSET, th->tid, arch->regs.fp_regset, &iov))
		return -errno;
	*size = iov.iov_len;
	return 0;
}

static int write_frame(struct remote *r, uint8_t *out, const struct arch_emergency *e)
{
	const struct arch *arch = r->t->arch;
	size_t used, room = e->xstate_size + arch->emergency.frame_bytes;
	uint64_t sp = arch->regs.get_sp(&r->saved) - arch->unwind.red_zone;
	int err;

	r->frame = (sp - room) & ~(uint64_t)(ALIGN - 1);
	used = arch->emergency.build_frame(out, room, r->frame, e);
	if (!used)
		return -E2BIG;
	r->scratch_addr = r->frame - STRING_BYTES;
	r->scratch_len = used + STRING_BYTES;
	r->scratch = malloc(r->scratch_len);
	if (!r->scratch)
		return -ENOMEM;
	err = mem_read(&r->t->mem, r->scratch_addr, r->scratch, r->scratch_len);
	return err ? err : mem_write(&r->t->mem, r->frame, out, used);
}

/* The number of the system call to execute again, or -1.  The kernel cannot continue a call that
 * waits for restart_syscall, since rt_sigreturn makes it drop the restart. */
static long interrupted_call(const struct remote *r)
{
	const struct arch *arch = r->t->arch;
	uint64_t end = arch->regs.get_pc(&r->saved);
	uint8_t code[LOOK_BACK];
	long nr = r->before;

	if (arch->syscall.before)
		end += arch->syscall.insn_length;
	else if (arch->syscall.state(&r->saved) == ARCH_IN_SYSCALL)
		nr = arch->syscall.number(&r->saved);
	if (nr == arch->nr.restart_syscall &&
	    !mem_read(&r->t->mem, end - sizeof(code), code, sizeof(code))) {
		long which = arch->restart.restarted_number(code, sizeof(code));

		nr = which >= 0 ? which : nr;
	}
	return nr;
}

int emergency_build(struct remote *r)
{
	const struct target_code *c = &r->t->code;
	struct arch_emergency e = {.regs = &r->saved,
				   .again = interrupted_call(r),
				   .sigmask = {r->sigmask[0], r->sigmask[1]},
				   .syscall_return = c->syscall_return,
				   .sigreturn = c->sigreturn,
				   .sigreturn_form = c->sigreturn_form};
	uint8_t *xstate = malloc(MAX_XSTATE),
		*out = malloc(MAX_XSTATE + r->t->arch->emergency.frame_bytes);
	int err =
	    xstate && out ? get_xstate(r->t->arch, r->carrier, xstate, &e.xstate_size) : -ENOMEM;

	e.xstate = xstate;
	if (!err)
		err = write_frame(r, out, &e);
	free(xstate);
	free(out);
	/* The frame is below the stack and its red zone, where nothing is live. */
	if (err)
		ignore_result(emergency_drop(r));
	return err;
}

int emergency_drop(struct remote *r)
{
	int err = 0;

	if (r->scratch)
		err = mem_write(&r->t->mem, r->scratch_addr, r->scratch, r->scratch_len);
	free(r->scratch);
	r->scratch = NULL;
	return err;
}
