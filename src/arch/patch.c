/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arch/patch.h"

const char *arch_refusal_text(enum arch_refusal refusal)
{
	static const char *const text[] = {
	    [ARCH_OK] = "can be hooked",
	    [ARCH_REFUSE_SHORT] = "the function is too short for a jump",
	    [ARCH_REFUSE_BRANCH_INTO] = "a branch of the function leads into its first bytes",
	    [ARCH_REFUSE_CALL] = "its first bytes contain a call",
	    [ARCH_REFUSE_INSN] = "an instruction at its start cannot be relocated",
	    [ARCH_REFUSE_REACH] = "no memory within reach of its start",
	    [ARCH_REFUSE_FOREIGN] = "a breakpoint or another tool's hook is at its start",
	    [ARCH_REFUSE_RSEQ] = "its first bytes lie in a restartable sequence (rseq)",
	};

	return text[refusal];
}
