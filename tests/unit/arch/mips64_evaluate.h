/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Executes MIPS64 code approximately.  Instructions that load addresses and branches are executed.
 * Any other instruction is replaced by a hash of its word and of all registers, which changes a
 * register and the trace.  Two runs with the same trace and the same registers at the end have
 * executed the same instructions on the same values.
 */
#ifndef TESTS_MIPS64_EVALUATE_H
#define TESTS_MIPS64_EVALUATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "arch/arch.h"

#define EV_AT	 1
#define EV_T9	 25
#define EV_RA	 31
#define EV_STEPS 64

struct ev_piece {
	uint64_t addr, length;
	const uint8_t *bytes;
};

struct ev {
	uint64_t reg[32], pc, trace;
	bool big, lost; /* lost: too many steps, or a branch in a delay slot */
	struct ev_piece piece[4];
};

static inline uint64_t ev_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 31;
}

static inline bool ev_fetch(const struct ev *e, uint64_t pc, uint32_t *word)
{
	for (int i = 0; i < 4; i++) {
		const struct ev_piece *p = &e->piece[i];
		const uint8_t *at = p->bytes + (pc - p->addr);

		if (pc - p->addr >= p->length)
			continue;
		*word = e->big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
				     (uint32_t)at[2] << 8 | at[3]
			       : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 |
				     (uint32_t)at[1] << 8 | at[0];
		return true;
	}
	return false;
}

/* Return: a hash of all registers except $at, on which code must not rely. */
static inline uint64_t ev_state(const struct ev *e)
{
	uint64_t h = 0;

	for (int i = 0; i < 32; i++)
		h = ev_mix(h, i == EV_AT ? 0 : e->reg[i]);
	return h;
}

static inline void ev_plain(struct ev *e, uint32_t w)
{
	uint32_t rs = w >> 21 & 31, rt = w >> 16 & 31, rd = w >> 11 & 31;

	switch (w >> 26) {
	case 0x0f: /* lui */
		e->reg[rt] = (uint64_t)(int64_t)(int32_t)(w << 16);
		break;
	case 0x0d: /* ori */
		e->reg[rt] = e->reg[rs] | (w & 0xffff);
		break;
	default:
		if ((w & 0xffe0003f) == 0x38) { /* dsll */
			e->reg[rd] = e->reg[rt] << (w >> 6 & 31);
			break;
		}
		if (!w)
			break;
		e->trace = ev_mix(ev_mix(e->trace, w), ev_state(e));
		e->reg[rt] = ev_mix(e->trace, 1);
		e->reg[rd] = ev_mix(e->trace, 2);
	}
	e->reg[0] = 0;
}

struct ev_branch {
	bool is, taken, nullifies; /* nullifies the delay slot when it is not taken */
	uint64_t to;
};

static inline struct ev_branch ev_branch(const struct ev *e, uint32_t w)
{
	uint32_t op = w >> 26, rs = w >> 21 & 31, rt = w >> 16 & 31;
	bool likely = (op >= 0x14 && op <= 0x17) || (op == 1 && rt & 2) || (op == 0x11 && rt & 2);
	bool always = op == 4 && rs == rt;
	struct ev_branch b = {.nullifies = likely};

	if (op == 2) {
		b = (struct ev_branch){true, true, false,
				       ((e->pc + 4) & ~0xfffffffull) | (w & 0x3ffffff) << 2};
	} else if (!op && (w & 63) == 8) {
		b = (struct ev_branch){true, true, false, e->reg[rs]};
	} else if ((op >= 4 && op <= 7) || (op >= 0x14 && op <= 0x17) || (op == 1 && rt < 4) ||
		   (op == 0x11 && rs == 8)) {
		b.is = true;
		b.to = e->pc + 4 + (uint64_t)((int64_t)(int16_t)w * 4);
		/* Any function of the values on which the condition depends. */
		b.taken = always || (ev_mix(ev_mix(w >> 16, e->reg[rs]),
					    op == 1 || op == 0x11 ? 0 : e->reg[rt]) &
				     1);
	}
	return b;
}

/* Executes from e->pc until @stop, an address in none of the pieces of code, or @limit steps; a branch
 * with its delay slot is one.  Return: the number of steps. */
static inline int ev_steps(struct ev *e, uint64_t stop, int limit)
{
	uint32_t w, slot;
	int n;

	for (n = 0; n < limit && e->pc != stop && ev_fetch(e, e->pc, &w); n++) {
		struct ev_branch b = ev_branch(e, w);

		if (!b.is) {
			ev_plain(e, w);
			e->pc += 4;
			continue;
		}
		if (!ev_fetch(e, e->pc + 4, &slot) || ev_branch(e, slot).is) {
			e->lost = true;
			break;
		}
		if (b.taken || !b.nullifies)
			ev_plain(e, slot);
		e->pc = b.taken ? b.to : e->pc + 8;
	}
	return n;
}

static inline void ev_run(struct ev *e, uint64_t stop)
{
	e->lost |= ev_steps(e, stop, EV_STEPS) == EV_STEPS;
}

static inline void ev_start(struct ev *e, uint64_t pc, uint64_t seed, bool big)
{
	memset(e, 0, sizeof(*e));
	for (int i = 1; i < 32; i++)
		e->reg[i] = ev_mix(seed, (uint64_t)i) & 0xffffffffff8;
	e->reg[EV_T9] = e->pc = pc;
	e->big = big;
}

/*
 * Return: whether the patched function at @addr does what the first @p->length bytes of the
 * original do.  It jumps to its slot at @slot (descriptor at @desc) and to the agent at @agent,
 * which jumps to the copy.
 */
static inline bool ev_same(const struct arch *arch, const uint8_t *code, uint64_t addr,
			   const struct arch_patch *p, uint64_t slot, uint64_t copy, uint64_t desc,
			   uint64_t agent)
{
	bool big = arch->elf_data == 2;
	uint8_t entry[48];
	size_t length = arch->patch.encode_slot(entry, slot, desc, agent);

	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct ev was, is;

		ev_start(&was, addr, seed, big);
		was.piece[0] = (struct ev_piece){addr, p->length, code};
		ev_run(&was, 0);
		ev_start(&is, addr, seed, big);
		is.piece[0] = (struct ev_piece){addr, p->length, p->new_bytes};
		is.piece[1] = (struct ev_piece){slot, length, entry};
		ev_run(&is, agent);
		if (is.pc != agent || is.reg[EV_AT] != desc || is.reg[EV_T9] != agent || is.trace)
			return false;
		is.pc = copy;
		is.piece[0].length = 0;
		is.piece[2] = (struct ev_piece){copy, p->relocated_length, p->relocated};
		ev_run(&is, 0);
		if (was.lost || is.lost || was.pc != is.pc || was.trace != is.trace ||
		    ev_state(&was) != ev_state(&is))
			return false;
	}
	return true;
}

#endif
