/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/sigtramp.h"

#include <gelf.h>
#include <string.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"
#include "unwind/untabled.h"

static struct uw_full rule_of(const struct arch_trampoline *tr)
{
	struct uw_full f = {.flags = UW_SIGNAL,
			    .cfa_kind = UW_CFA_DEREF,
			    .cfa_reg = UW_REG_SP,
			    .cfa_off = tr->at[UW_REG_SP],
			    .at_reg = UW_REG_SP};

	for (int i = 0; i < UW_MAX_REGS; i++) {
		f.where[i] = tr->at[i] < 0 ? UW_UNDEFINED : UW_AT_REG;
		f.off[i] = tr->at[i] < 0 ? 0 : tr->at[i];
	}
	f.where[UW_REG_SP] = UW_SAME;
	f.off[UW_REG_SP] = 0;
	return f;
}

static const struct arch_trampoline *trampoline_at(const struct arch *arch, const uint8_t *code,
						   size_t n)
{
	for (const struct arch_trampoline *t = arch->unwind.trampolines; t->code.length; t++) {
		if (n >= t->code.length && !memcmp(code, t->code.bytes, t->code.length))
			return t;
	}
	return NULL;
}

int sigtramp_rows(const struct arch *arch, const uint8_t *code, size_t n, uint64_t addr,
		  struct rule_set *set, struct unwind_table *t)
{
	int err = 0;

	for (size_t at = 0; arch->unwind.trampolines && at < n && !err; at += arch->insn_align) {
		const struct arch_trampoline *tr = trampoline_at(arch, code + at, n - at);
		struct uw_full f;

		if (!tr || !(addr + at))
			continue;
		/* Directly after another trampoline: the row at its last byte replaces the row
		 * that would end it. */
		if (t->n && t->pc[t->n - 1] == addr + at)
			t->n--;
		f = rule_of(tr);
		err = unwind_table_add(t, addr + at - 1, rule_set_add(set, &f));
		if (!err)
			err = unwind_table_add(t, addr + at + tr->code.length, 0);
	}
	return err;
}

int sigtramp_rows_of_elf(Elf *elf, const struct arch *arch, struct rule_set *set,
			 struct unwind_table *t)
{
	uint64_t last = 0;
	size_t n;
	int err = 0;

	if (!arch->unwind.trampolines || elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n && !err; i++) {
		Elf_Data *d;
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    !(ph.p_flags & PF_X) || ph.p_vaddr < last)
			continue;
		d = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (d && d->d_buf)
			err = sigtramp_rows(arch, d->d_buf, d->d_size, ph.p_vaddr, set, t);
		last = ph.p_vaddr + ph.p_filesz;
	}
	return err;
}
