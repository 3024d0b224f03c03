/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/reap.h"

#include <unistd.h>
#include "attach/remains.h"
#include "lib/priority.h"

#define REAP_MS 5000

int reap_copy(struct target *t, struct copy *c, bool gentle, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(REAP_MS);
	struct priority old;
	int ret;

	priority_raise(&old);
	ret = copy_stop(t, gentle, &deadline, err);
	if (!ret) {
		ret = copy_reap(c, t, err);
		target_release(t);
	}
	priority_restore(&old);
	return ret;
}

int reap_killed(struct target *t, bool anyway, uint32_t *n, struct mp_err *err)
{
	struct copy none = {0};
	struct remains r;
	int ret;

	*n = 0;
	if (remains_find(t->pid, &r) || !(anyway || r.dead.list.n))
		return 0;
	ret = reap_copy(t, &none, false, err);
	if (!ret)
		*n = (uint32_t)r.dead.list.n;
	remains_free(&r);
	return ret;
}

bool reap_remains(struct target *t)
{
	struct deadline deadline = deadline_in_ms(REAP_MS);
	struct remains r;
	uint32_t n;
	bool left;

	do {
		reap_killed(t, false, &n, NULL);
		if (remains_find(t->pid, &r))
			return true; /* it has ended */
		left = r.dead.list.n || r.dying;
		remains_free(&r);
		if (left)
			usleep(1000);
	} while (left && !deadline_passed(&deadline));
	return !left;
}
