/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/remains.h"

#include <signal.h>
#include <string.h>
#include "attach/proc/stat.h"

/* Page faults of a copy that made another one: those of its instruction and of the kernel's own
 * accesses. */
#define MAX_FAULTS 4

#define BIT(signal) (1ull << ((signal)-1))

/* Return: 0 not a copy, 1 a copy that is not dead yet, 2 a copy's zombie. */
static int copy_state(pid_t pid, struct proc_status *st)
{
	const uint64_t never = BIT(SIGKILL) | BIT(SIGSTOP); /* cannot be blocked */
	struct proc_stat stat;
	uint64_t signal;

	if (proc_stat_read(pid, &stat) || proc_status_read(pid, 0, st) ||
	    stat.field[STAT_EXIT_SIGNAL] || st->tracer)
		return 0;
	if (st->state != 'Z')
		return (st->sig_blocked | never | BIT(SIGSEGV)) == UINT64_MAX;
	signal = stat.field[STAT_EXIT_CODE] & 0x7f;
	if (signal == SIGKILL)
		return (st->sig_blocked | never) == UINT64_MAX &&
			       stat.field[STAT_MINFLT] + stat.field[STAT_MAJFLT] <= MAX_FAULTS
			   ? 2
			   : 0;
	return signal == SIGSEGV && (st->sig_blocked | never) == ~BIT(SIGSEGV) ? 2 : 0;
}

int remains_find(pid_t pid, struct remains *r)
{
	struct tids children;
	int ret = proc_children(pid, &children);

	memset(r, 0, sizeof(*r));
	if (ret)
		return ret;
	vec_for_each (&children.list, child) {
		struct proc_status st;
		int what = copy_state(*child, &st);

		r->dying |= what == 1;
		if (what == 2 && !ret)
			ret = vec_push(&r->dead.list, st.ns_pid);
	}
	vec_free(&children.list);
	if (ret)
		remains_free(r);
	return ret;
}

void remains_free(struct remains *r)
{
	vec_free(&r->dead.list);
}
