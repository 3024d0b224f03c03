/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/breakpoint.h"

#include <errno.h>

int breakpoint_set(struct target *t, struct breakpoint *b, uint64_t addr)
{
	const struct arch_code *code = &t->arch->breakpoint.wide;
	int ret;

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
	return addr ? mem_write_text(&t->mem, addr, b->saved, b->length) : 0;
}

int breakpoint_hit(struct target *t, struct thread *th, const struct breakpoint *b)
{
	uint8_t behind = t->arch->breakpoint.pc_behind;
	struct arch_regs regs = th->regs;
	int ret;

	if (!b->addr || t->arch->regs.get_pc(&th->regs) != b->addr + behind)
		return 0;
	if (!behind)
		return 1;
	t->arch->regs.set_pc(&regs, b->addr);
	ret = thread_put_regs(t, th, &regs);
	return ret ? ret : 1;
}
