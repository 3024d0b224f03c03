/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/signal_stack.h"

#include <errno.h>
#include "lib/fault.h"

static int call_sigaltstack(struct remote *r, uint64_t *start)
{
	const struct arch *arch = r->t->arch;
	const uint64_t args[6] = {0, r->scratch_addr};
	uint8_t word[sizeof(uint64_t)];
	long result;
	int ret = remote_syscall(r, arch->nr.sigaltstack, args, &result);

	if (!ret)
		ret = (int)result;
	/* ss_sp is the first member of stack_t. */
	if (!ret)
		ret = mem_read(&r->t->mem, r->scratch_addr, word, arch->word_size);
	if (!ret)
		*start = arch_word(arch, word);
	return ret;
}

int signal_stack_read(struct target *t, struct thread *th, const struct maps *maps, uint64_t *start)
{
	struct mp_err left_alone = {0};
	struct remote r;
	int ret = remote_begin_in(&r, t, th, maps, &left_alone), end;

	if (ret)
		return ret;
	ret = call_sigaltstack(&r, start);
	fault_point("signal-stack-asked");
	end = remote_end(&r);
	return ret ? ret : end;
}
