/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/breakpoint.h"

#include <errno.h>
#include <sys/ptrace.h>

#define CONTROL                                                                                    \
	7 /* debug register with an enable bit for each breakpoint (Intel SDM 3B, 17.2.4)          \
	   */

static int poke(struct target *t, unsigned int n, unsigned long value)
{
	unsigned long at = t->arch->breakpoint.debug_registers + n * sizeof(long);

	return ptrace(PTRACE_POKEUSER, t->pid, (void *)at, (void *)value) ? -errno : 0;
}

static int enable(struct target *t, const struct breakpoint *b, bool on)
{
	unsigned long at = t->arch->breakpoint.debug_registers + CONTROL * sizeof(long);
	unsigned long bit = 1ul << (2 * b->index), control;

	errno = 0;
	control = (unsigned long)ptrace(PTRACE_PEEKUSER, t->pid, (void *)at, 0);
	if (errno)
		return -errno;
	return poke(t, CONTROL, on ? control | bit : control & ~bit);
}

bool breakpoint_blocks(const struct target *t)
{
	return !t->arch->breakpoint.debug_registers;
}

int breakpoint_set(struct target *t, struct breakpoint *b, uint64_t addr)
{
	const struct arch_code *code = &t->arch->breakpoint.wide;
	int ret;

	if (t->arch->breakpoint.debug_registers) {
		ret = poke(t, b->index, (unsigned long)addr);
		if (!ret)
			ret = enable(t, b, true);
		if (!ret)
			b->addr = addr;
		return ret;
	}
	if (addr & 1 && t->arch->breakpoint.narrow.length) {
		code = &t->arch->breakpoint.narrow;
		addr &= ~1ull;
	}
	b->length = code->length;
	ret = b->length ? mem_read(&t->mem, addr, b->saved, b->length) : -ENOSYS;
	if (!ret)
		ret = mem_write_text(&t->mem, addr, code->bytes, b->length);
	if (!ret)
		b->addr = addr;
	return ret;
}

int breakpoint_clear(struct target *t, struct breakpoint *b)
{
	uint64_t addr = b->addr;

	b->addr = 0;
	if (!addr)
		return 0;
	if (t->arch->breakpoint.debug_registers) {
		int ret = enable(t, b, false);

		return ret ? ret : poke(t, b->index, 0);
	}
	return mem_write_text(&t->mem, addr, b->saved, b->length);
}
