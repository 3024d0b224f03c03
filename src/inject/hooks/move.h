/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Moves stopped threads between a hook's window and the relocated copy of its instructions. */
#ifndef INJECT_HOOKS_MOVE_H
#define INJECT_HOOKS_MOVE_H

#include <stdbool.h>
#include "arch/arch.h"
#include "formats/session.h"
#include "inject/block/lookup.h"
#include "lib/check.h"

/**
 * move_into_copy() - before the window is patched: from inside the window to the same instruction of
 * the copy, which continues in the function whether or not the window is patched
 * @regs: registers of a stopped thread; changed only if the result is true
 * Return: whether the thread is to be moved.  A thread at the window's first instruction enters the
 *	hook instead.
 */
__must_check bool move_into_copy(const struct arch *arch, const struct ss_journal_hook *h,
				 struct arch_regs *regs);

/** move_cannot() - is @pc inside a group of instructions of the window that is relocated as one? */
bool move_cannot(const struct arch *arch, const struct ss_journal_hook *h, uint64_t pc);

/**
 * move_jump() - can a thread be inside the jump that is in the window?
 * @now: the bytes at the window.  If they are not the hook's jump, a thread there executes the
 *	function's own instructions and must not be moved.
 * @jump: set, if the result is true, to the span behind the jump's first instruction
 * Return: whether the window has a jump of several instructions.
 */
__must_check bool move_jump(const struct arch *arch, const struct ss_journal_hook *h,
			    const uint8_t now[SS_WINDOW], struct span *jump);

/**
 * move_out_of_jump() - before the window is restored: from inside its jump to its start
 * @h: a hook for which move_jump() was true
 * @regs: registers of a stopped thread; changed only if the result is true
 */
__must_check bool move_out_of_jump(const struct arch *arch, const struct ss_journal_hook *h,
				   struct arch_regs *regs);

enum moved {
	MOVED_OUTSIDE, /* the thread is not in the hook's slot */
	MOVED_BACK,    /* @regs are changed */
	MOVED_NOT,     /* it is in the copy, where no instruction of the text has this state */
};

/**
 * move_back() - after the window is restored: from the slot to the same instruction of the text
 * @regs: registers of a stopped thread; changed only with MOVED_BACK
 */
__must_check enum moved move_back(const struct arch *arch, const struct ss_journal_hook *h,
				  struct arch_regs *regs);

#endif
