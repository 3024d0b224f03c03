/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/flow.h"

#include <string.h>
#include "unwind/bytes.h"
#include "unwind/cfi.h"
#include "unwind/rule_set.h"

#define UNIT		    2u /* the shortest instruction */
#define MAX_FRAME	    (64 << 20)
#define MAX_TABLE	    4096u
#define LOOK_AHEAD	    64 /* instructions */
#define FRAME_POINTER_AHEAD 2000

/* Known state before an instruction.  Offsets of saved registers and of the base are relative to
 * the CFA. */
struct state {
	bool valid, sp_known, fp_known;
	bool fp_holds;	      /* the code restores sp from it, so sp can be anything */
	uint8_t fp;	      /* register that is the CFA + fp_at, if fp_known */
	int32_t sp_at, fp_at; /* the stack pointer is the CFA + sp_at */
	uint32_t saved;	      /* bit r: register r is at the CFA + at[r] */
	uint32_t changed;     /* bit r: register r no longer has the caller's value */
	int32_t at[32];
};

struct flow {
	const struct arch *arch;
	const uint8_t *code;
	uint64_t start, end, pc;
	uint8_t mode;
	int8_t link; /* the link register's number */
	struct state now, entry, body;
	uint8_t conditional; /* number of following instructions that are conditional */
	bool may_switch;     /* this function has a computed jump */
	bool after_call;   /* the previous instruction is a call, which possibly does not return */
	uint64_t farthest; /* farthest branch target in this function */
	uint64_t constant; /* value of register constant_of */
	uint8_t constant_of;
	uint32_t *pending; /* by unit: index + 1 in states, for branch targets */
	uint8_t *data;	   /* by unit: 1 if it is data */
	VEC(struct state) states;
	struct flow_starts *calls;
	flow_row_fn *row;
	void *ctx;
};

static size_t unit_of(const struct flow *f, uint64_t addr)
{
	return (size_t)(addr - f->start) / UNIT;
}

static bool inside(const struct flow *f, uint64_t addr)
{
	return addr >= f->start && addr < f->end;
}

static bool decode(const struct flow *f, uint64_t pc, struct arch_frame_insn *i)
{
	return pc < f->end && f->arch->unwind.frame_insn(f->arch, f->code + (pc - f->start),
							 (size_t)(f->end - pc), pc, f->mode, i);
}

/* ---------------------------------------------------------------- rules -- */

static bool rule_of(const struct flow *f, const struct state *s, struct uw_full *rule)
{
	uint32_t preserved = f->arch->unwind.preserved;
	bool by_fp = s->fp_known && (s->fp_holds || !s->sp_known);

	if (!s->valid || (!s->sp_known && !s->fp_known) ||
	    (s->changed >> f->link & 1 && !(s->saved >> f->link & 1)))
		return false;
	*rule = uw_entry_rule(f->arch);
	if (by_fp) {
		if (f->arch->unwind.column[s->fp] < 0)
			return false;
		rule->cfa_reg = (uint8_t)f->arch->unwind.column[s->fp];
	}
	rule->cfa_off = -(by_fp ? s->fp_at : s->sp_at);
	for (int r = 0; r < 32; r++) {
		int column = r == f->link ? UW_REG_PC : cfi_column(f->arch, (uint64_t)r);

		if (column < 0 || column == UW_REG_SP || (column == UW_REG_PC && r != f->link) ||
		    (column != UW_REG_PC && !(preserved >> column & 1)))
			continue;
		if (s->saved >> r & 1) {
			rule->where[column] = UW_AT_CFA;
			rule->off[column] = s->at[r];
		} else if (s->changed >> r & 1) {
			rule->where[column] = UW_UNDEFINED;
		}
	}
	return true;
}

static int put_row(struct flow *f, uint64_t pc, const struct state *s)
{
	struct uw_full rule;

	return f->row(f->ctx, pc, s && rule_of(f, s, &rule) ? &rule : NULL);
}

/* ---------------------------------------------------------------- effects -- */

static void sp_lost(struct state *s)
{
	s->sp_known = false;
}

static void sp_set(struct state *s, int64_t at)
{
	if (at > 0 || at < -MAX_FRAME) {
		s->valid = at <= 0;
		return;
	}
	s->sp_known = true;
	s->sp_at = (int32_t)at;
	/* Memory below the stack pointer can be overwritten. */
	for (int r = 0; r < 32; r++) {
		if (s->saved >> r & 1 && s->at[r] < s->sp_at)
			s->saved &= ~(1u << r);
	}
}

/* A register farther from the CFA than the largest frame is not a frame pointer. */
static void fp_set(struct state *s, int64_t at)
{
	s->fp_known = at >= -MAX_FRAME && at <= MAX_FRAME;
	if (s->fp_known)
		s->fp_at = (int32_t)at;
}

static void change_sp(struct flow *f, const struct arch_frame_insn *i)
{
	struct state *s = &f->now;
	bool constant = f->constant_of == i->sp_reg;

	switch (i->sp) {
	case ARCH_SP_ADD:
		if (s->sp_known)
			sp_set(s, (int64_t)s->sp_at + i->sp_n);
		return;
	case ARCH_SP_FROM:
		if (s->fp_known && i->sp_reg == s->fp)
			sp_set(s, (int64_t)s->fp_at + i->sp_n);
		else
			sp_lost(s);
		return;
	case ARCH_SP_ADD_REG:
		if (constant && s->sp_known)
			sp_set(s, (int64_t)s->sp_at + i->sp_n * (int64_t)(int32_t)f->constant);
		else
			sp_lost(s);
		return;
	case ARCH_SP_LOST:
		sp_lost(s);
		return;
	}
}

/* Return: whether the stack pointer is restored from register @reg before the next function
 * begins. */
static bool is_frame_pointer(const struct flow *f, unsigned reg)
{
	uint64_t pc = f->pc;
	struct arch_frame_insn i;

	for (int n = 0; n < FRAME_POINTER_AHEAD && decode(f, pc, &i); n++, pc += i.length) {
		if (i.sp == ARCH_SP_FROM && i.sp_reg == reg)
			return true;
		if (i.prologue)
			return false;
	}
	return false;
}

/* Removes the lowest register from @mask.  Registers are stored from the lowest address up. Return:
 * the address after it. */
static int32_t next_word(const struct flow *f, uint32_t *mask, int *reg, int32_t at)
{
	*reg = __builtin_ctz(*mask);
	*mask &= *mask - 1;
	return at + f->arch->word_size;
}

static void note_loads(struct flow *f, const struct arch_frame_insn *i)
{
	struct state *s = &f->now;
	uint32_t mask = i->loads;
	int32_t at = s->sp_at + i->load_at;

	while (mask && s->sp_known) {
		int32_t here = at;
		int reg;

		at = next_word(f, &mask, &reg, at);
		if (s->saved >> reg & 1 && s->at[reg] == here)
			s->changed &= ~(1u << reg);
	}
}

static void note_saves(struct flow *f, const struct arch_frame_insn *i)
{
	struct state *s = &f->now;
	uint32_t mask = i->saves;
	int32_t at = s->sp_at + i->save_at;

	while (mask && s->sp_known) {
		int32_t here = at;
		int reg;

		at = next_word(f, &mask, &reg, at);
		/* Not the caller's value if the register was saved or changed before. */
		if ((s->saved | s->changed) >> reg & 1 || here >= 0)
			continue;
		s->saved |= 1u << reg;
		s->at[reg] = here;
	}
}

static void note_copy(struct flow *f, const struct arch_frame_insn *i)
{
	struct state *s = &f->now;
	bool columned = i->copy != ARCH_NO_REG && f->arch->unwind.column[i->copy] >= 0;

	if (s->fp_known && i->add == s->fp)
		fp_set(s, (int64_t)s->fp_at + i->add_n);
	else if (s->fp_known && (i->writes | i->loads) >> s->fp & 1)
		s->fp_known = false;
	if (columned && s->sp_known && !(s->fp_known && s->fp_holds)) {
		s->fp = i->copy;
		fp_set(s, (int64_t)s->sp_at + i->copy_n);
		s->fp_holds = !(s->changed >> f->link & 1) && is_frame_pointer(f, s->fp);
	}
	if (i->constant != ARCH_NO_REG) {
		if (!i->more)
			f->constant = (uint64_t)(int64_t)i->constant_n;
		else if (f->constant_of == i->constant)
			f->constant |= (uint32_t)i->constant_n;
		f->constant_of = i->constant;
	} else if (f->constant_of != ARCH_NO_REG && i->writes >> f->constant_of & 1) {
		f->constant_of = ARCH_NO_REG;
	}
}

static void apply(struct flow *f, const struct arch_frame_insn *i)
{
	if (i->conditional)
		return;
	f->now.changed |= i->writes | i->loads;
	note_loads(f, i);
	note_copy(f, i);
	if (i->sp != ARCH_SP_SAME)
		change_sp(f, i);
	note_saves(f, i);
}

/* ---------------------------------------------------------------- control flow -- */

static int add_pending(struct flow *f, uint64_t target)
{
	size_t unit;

	if (!inside(f, target) || target <= f->pc || !f->now.valid)
		return 0;
	unit = unit_of(f, target);
	if (target > f->farthest)
		f->farthest = target;
	if (f->pending[unit])
		return 0;
	if (vec_push(&f->states, f->now))
		return -ENOMEM;
	f->pending[unit] = (uint32_t)f->states.n;
	return 0;
}

/* Reads a branch table of offsets in halfwords at @base, after the branch instruction.  It ends at
 * the nearest target. */
static int read_table(struct flow *f, const struct arch_frame_insn *i, uint64_t base)
{
	uint64_t nearest = f->end, at = base;

	for (unsigned n = 0; n < MAX_TABLE && at + i->table_entry <= nearest; n++) {
		struct bytes b = {.p = f->code + (at - f->start),
				  .end = f->code + (f->end - f->start)};
		uint64_t target = base + 2 * bytes_take(&b, i->table_entry);
		int err = add_pending(f, target);

		if (err)
			return err;
		f->data[unit_of(f, at)] = 1;
		at += i->table_entry;
		if (target < nearest)
			nearest = target;
	}
	return 0;
}

static void mark_data(struct flow *f, const struct arch_frame_insn *i)
{
	for (uint64_t at = i->data; at < i->data + i->data_length; at += UNIT) {
		if (i->data && inside(f, at))
			f->data[unit_of(f, at)] = 1;
	}
}

static int add_call(struct flow *f, const struct arch_frame_insn *i)
{
	struct flow_start s = {i->target, i->target_mode};

	return f->calls && i->has_target ? vec_push(&f->calls->list, s) : 0;
}

static int follow(struct flow *f, const struct arch_frame_insn *i)
{
	int err = 0;

	switch (i->flow) {
	case ARCH_FLOW_CALL:
		err = add_call(f, i);
		f->now.changed |= 1u << f->link;
		f->after_call = true;
		break;
	case ARCH_FLOW_BRANCH:
	case ARCH_FLOW_JUMP:
		err = i->has_target ? add_pending(f, i->target) : 0;
		if (i->flow == ARCH_FLOW_JUMP && !i->conditional)
			f->now.valid = false;
		break;
	case ARCH_FLOW_SWITCH:
		f->may_switch = true;
		err = i->table_entry ? read_table(f, i, f->pc) : 0;
		f->now.valid = i->conditional;
		break;
	case ARCH_FLOW_EXIT:
		f->now.valid = i->conditional;
		break;
	}
	return err;
}

/* Return: whether a new function begins here, after the end of another.  Otherwise it is code of
 * the same function without a visible jump to it (exception handlers, loops): such code calls, or
 * removes the frame, without having built one. */
static bool looks_like_function(const struct flow *f)
{
	uint64_t pc = f->pc;
	struct arch_frame_insn i;

	for (int n = 0; n < LOOK_AHEAD && decode(f, pc, &i); n++, pc += i.length) {
		if (i.saves >> f->link & 1)
			return true;
		if (i.flow == ARCH_FLOW_CALL || i.loads >> f->link & 1)
			return false;
		if (i.sp == ARCH_SP_ADD || i.sp == ARCH_SP_ADD_REG)
			return i.sp_n < 0;
		if (i.sp != ARCH_SP_SAME)
			return false;
		if (i.flow == ARCH_FLOW_EXIT)
			return true;
		if (i.flow == ARCH_FLOW_JUMP)
			return !inside(f, i.target);
	}
	return true;
}

static void enter(struct flow *f)
{
	f->now = f->entry;
	f->body = f->entry;
	f->may_switch = false;
	f->farthest = 0;
}

/* Sets the state at an instruction that is not, or not only, reached from the previous one. */
static void arrive(struct flow *f, const struct arch_frame_insn *i)
{
	uint32_t pending = f->pending[unit_of(f, f->pc)];
	bool within = f->farthest > f->pc || f->may_switch;

	if (pending && (!f->now.valid || f->after_call))
		f->now = f->states.at[pending - 1];
	else if (!f->now.valid && (i->prologue || (!within && looks_like_function(f))))
		enter(f);
	else if (!f->now.valid)
		f->now = f->body;
	/* That call does not return */
	else if (f->after_call && i->prologue && f->now.sp_known && f->now.sp_at < 0 &&
		 f->now.saved >> f->link & 1)
		enter(f);
	f->after_call = false;
	if (f->now.valid && (!f->now.sp_known || f->now.sp_at <= f->body.sp_at))
		f->body = f->now;
}

static int one(struct flow *f)
{
	struct arch_frame_insn i, slot;
	int err;

	if (f->data[unit_of(f, f->pc)]) {
		f->now.valid = false;
		err = put_row(f, f->pc, NULL);
		f->pc += UNIT;
		return err;
	}
	if (!decode(f, f->pc, &i)) {
		err = put_row(f, f->pc, NULL);
		f->pc = f->end;
		return err;
	}
	arrive(f, &i);
	if (f->conditional) {
		f->conditional--;
		i.conditional = true;
	} else {
		f->conditional = i.next_conditional;
	}
	mark_data(f, &i);
	err = put_row(f, f->pc, &f->now);
	f->pc += i.length;
	apply(f, &i);
	if (!err && i.delay && decode(f, f->pc, &slot) && !slot.delay) {
		/* No interrupt is seen in a delay slot, and a call returns after it. */
		apply(f, &slot);
		err = put_row(f, f->pc, &f->now);
		f->pc += slot.length;
	}
	return err ? err : follow(f, &i);
}

static int link_of(const struct arch *arch)
{
	for (int r = 0; r < 32; r++) {
		if (arch->unwind.column[r] == UW_REG_LR)
			return r;
	}
	return -1;
}

int flow_rows(const struct arch *arch, const uint8_t *code, uint64_t start, uint64_t end,
	      uint8_t mode, struct flow_starts *calls, flow_row_fn *row, void *ctx)
{
	struct flow f = {.arch = arch,
			 .code = code,
			 .start = start,
			 .end = end,
			 .pc = start,
			 .mode = mode,
			 .link = (int8_t)link_of(arch),
			 .constant_of = ARCH_NO_REG,
			 .calls = calls,
			 .row = row,
			 .ctx = ctx};
	size_t units = (size_t)(end - start) / UNIT + 1;
	int err = 0;

	if (!arch->unwind.frame_insn || arch->unwind.call_push || f.link < 0 || end <= start)
		return 0;
	f.entry.valid = f.entry.sp_known = true;
	f.pending = calloc(units, sizeof(*f.pending));
	f.data = calloc(units, 1);
	if (!f.pending || !f.data)
		err = -ENOMEM;
	enter(&f);
	while (!err && f.pc < end)
		err = one(&f);
	if (!err)
		err = put_row(&f, end, NULL);
	free(f.pending);
	free(f.data);
	vec_free(&f.states);
	return err;
}
