/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/move.h"

#include <string.h>
#include "inject/internal.h"

/* Return: the index of the window's instruction at @pc, or h->insns. */
static uint32_t insn_at(const struct ss_journal_hook *h, uint64_t pc)
{
	uint32_t i = 0;

	while (i < h->insns && pc != h->addr + h->old_off[i])
		i++;
	return i;
}

static bool in_window(const struct ss_journal_hook *h, uint64_t pc)
{
	return pc > h->addr && pc < h->addr + h->length;
}

bool move_into_copy(const struct arch *arch, const struct ss_journal_hook *h,
		    struct arch_regs *regs)
{
	uint64_t pc = arch->regs.get_pc(regs);
	uint32_t i = insn_at(h, pc);

	if (!in_window(h, pc) || i == h->insns)
		return false;
	arch->regs.set_pc(regs, h->relocated_addr + h->new_off[i]);
	return true;
}

bool move_cannot(const struct arch *arch, const struct ss_journal_hook *h, uint64_t pc)
{
	return in_window(h, pc) && insn_at(h, pc) == h->insns && arch->patch.groups;
}

bool move_jump(const struct arch *arch, const struct ss_journal_hook *h,
	       const uint8_t now[SS_WINDOW], struct span *jump)
{
	if (!arch->patch.long_jump || h->length < arch->patch.long_jump ||
	    memcmp(now, h->new_bytes, h->length))
		return false;
	*jump = (struct span){h->addr + 1, h->addr + h->length};
	return true;
}

bool move_out_of_jump(const struct arch *arch, const struct ss_journal_hook *h,
		      struct arch_regs *regs)
{
	if (!in_window(h, arch->regs.get_pc(regs)))
		return false;
	/* The jump has only changed a scratch register. */
	arch->regs.set_pc(regs, h->addr);
	return true;
}

enum moved move_back(const struct arch *arch, const struct ss_journal_hook *h,
		     struct arch_regs *regs)
{
	uint64_t pc = arch->regs.get_pc(regs), in_copy = pc - h->relocated_addr;

	/* Until the copy's first instruction, only registers that are free at a function's entry
	 * have changed, and the one that enter() sets. */
	if (pc >= h->slot_addr + SLOT_ENTRY && pc <= h->relocated_addr + h->new_off[0]) {
		arch->regs.set_pc(regs, h->addr);
		if (arch->patch.enter)
			arch->patch.enter(regs, h->addr);
		return MOVED_BACK;
	}
	if (in_copy >= h->relocated_length)
		return MOVED_OUTSIDE;
	for (uint32_t i = 0; i < h->insns; i++) {
		if (in_copy != h->new_off[i])
			continue;
		arch->regs.set_pc(regs, h->addr + h->old_off[i]);
		return MOVED_BACK;
	}
	if (arch->patch.groups)
		return MOVED_NOT;
	arch->regs.set_pc(regs, h->addr + h->length); /* the jump back */
	return MOVED_BACK;
}
